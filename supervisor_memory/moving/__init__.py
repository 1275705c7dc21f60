"""Export, import and copy: from a store into a file, from a file into a store, from store to store."""
