"""Everything on one machine: databases, model servers and the product's own processes."""
