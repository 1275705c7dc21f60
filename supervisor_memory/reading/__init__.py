"""What people and models look up: topics, transcripts, summaries, figures of a period, the past."""
