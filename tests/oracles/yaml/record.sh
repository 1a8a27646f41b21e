#!/bin/sh
# Writes tests/golden/yaml from the cases here, with what Go's modules do.  Needs Go.
set -eu
cd "$(dirname "$0")"
go run . cases ../../golden/yaml
