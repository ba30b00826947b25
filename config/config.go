// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package config has the CRDs and the samples, for programs that install them without this tree.
package config

import "embed"

// Files are the CRDs and the samples, by their paths in this folder.
//
//go:embed crd/bases/*.yaml samples/nodepool_*.yaml
var Files embed.FS
