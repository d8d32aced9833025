"""The page: a folder or file per tab, assembled in `page`."""
