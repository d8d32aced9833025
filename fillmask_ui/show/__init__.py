"""What is shown of records: figures and their formats, charts, templates, the report of a run."""
