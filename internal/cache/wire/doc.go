// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wire reads the protobuf in which an API server sends objects, and removes the dropped
// fields before anything is decoded: most readers need few fields of a pod, and decoding all of
// them costs several times as much.
//
//	envelope.go  the messages around objects, in lists and in the frames of watches
//	mask.go      the kept fields, and the removal of the others
package wire
