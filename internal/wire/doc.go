// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wire reads the protobuf in which an API server sends objects, and cuts out of their
// bytes what is not kept, before anything is decoded: most of what a pod has is of no use to most
// readers, and decoding it costs several times what is kept of it.
//
//	envelope.go  what is around objects, in answers with lists and in the frames of watches
//	mask.go      which fields are kept, and how the others are cut out
package wire
