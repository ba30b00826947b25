// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podconfig knows which ConfigMaps and Secrets the pods of a workload use, and whether
// the content of these has changed. It keeps hashes, and no content.
//
//	uses.go    what a pod template uses: objects, and of some of them single keys only
//	record.go  what is kept of a ConfigMap or Secret in place of its content
//	hash.go    the hash of the content of all that a template uses
package podconfig
