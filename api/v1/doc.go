// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 holds the API types of the group tidekeeper.dev, version v1.
//
// Defaults and validation are markers of the fields: `make generate` turns them into the CRD
// schema, so that the API server itself refuses invalid objects, without a webhook.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +kubebuilder:ac:output:package="../applyconfiguration"
// +groupName=tidekeeper.dev
package v1
