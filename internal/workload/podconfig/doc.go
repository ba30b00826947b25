// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podconfig determines which ConfigMaps and Secrets a workload's pods use, and whether the
// content of these objects has changed. It stores only hashes of the content.
//
//	uses.go    the objects that a pod template uses, entirely or by key
//	record.go  the record of hashes that replaces a ConfigMap or Secret in the cache
//	hash.go    the hash of all content that a pod template uses
package podconfig
