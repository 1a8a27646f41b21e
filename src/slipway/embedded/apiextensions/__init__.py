"""CustomResourceDefinitions: their schemas, and the resources that they define."""
