"""What users write: versioned types, defaults, validation, conversion. No input or output, no clock."""
