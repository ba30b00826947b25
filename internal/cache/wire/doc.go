// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wire reads the protobuf encoding in which an API server sends objects. It removes the
// fields that a caller does not keep before anything is decoded. Most readers need few fields of a
// pod, and decoding all fields costs several times as much.
//
//	envelope.go  the messages that contain objects, in lists and in watch frames
//	mask.go      the set of fields to keep, and the removal of all other fields
package wire
