// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podconfig determines which ConfigMaps and Secrets the pods of a workload use, and
// whether their content has changed. It stores hashes, and no content.
//
//	uses.go    the objects, or single keys of objects, that a pod template uses
//	record.go  the record with hashes that replaces a ConfigMap or Secret in the cache
//	hash.go    the hash of all content that a template uses
package podconfig
