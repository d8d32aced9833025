"""The page: one file per tab, assembled in `app`."""
