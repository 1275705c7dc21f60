"""The promises of every backend by topic; `backend_contract.py` puts them together."""
