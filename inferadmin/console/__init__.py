"""Console pages that are put together from several apps."""
