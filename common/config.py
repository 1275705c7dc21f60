"""What the team reads from the environment and `.env`: the same names that the memory library reads."""

from functools import lru_cache

from pydantic import SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

__all__ = ["Config", "config"]


class Config(BaseSettings):
    """The team's configuration. Names are upper case in the environment, as in `.env.example`."""

    model_config = SettingsConfigDict(
        env_file=".env", extra="ignore", frozen=True, env_ignore_empty=True, case_sensitive=False
    )

    chat_model: str | None = None
    """Any `init_chat_model` string, such as "openai:gpt-5-mini"; None: the rule-based model."""
    embedding_model: str | None = None
    embedding_dim: int | None = None
    memory_backend: str = "in_memory"
    qdrant_url: str | None = None
    qdrant_key: SecretStr | None = None


@lru_cache(maxsize=1)
def config() -> Config:
    """The configuration, read once."""
    return Config()
