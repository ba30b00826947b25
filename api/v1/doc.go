// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 holds the API types of the group tidekeeper.dev, version v1.
//
// Defaults and validation are markers of the fields: `make generate`
// turns them into the CRD schema, so the API server itself refuses what is
// wrong and no webhook is needed.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +kubebuilder:ac:output:package="../applyconfiguration"
// +groupName=tidekeeper.dev
package v1
