// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// protobufPrefix is the prefix of objects in Kubernetes' protobuf encoding.
var protobufPrefix = []byte("k8s\x00")

// metadata decodes an encoded object's metadata. It returns empty metadata if that fails. It works
// for any kind, because the metadata has the same field name and number in all kinds.
func metadata(encoded []byte) metav1.ObjectMeta {
	var object metav1.PartialObjectMetadata
	if raw, ok := fromEnvelope(encoded); ok {
		if object.Unmarshal(raw.Raw) != nil {
			return metav1.ObjectMeta{}
		}
	} else if json.Unmarshal(encoded, &object) != nil {
		return metav1.ObjectMeta{}
	}
	return object.ObjectMeta
}

// listVersion returns an encoded list's resourceVersion, or "" if the list cannot be decoded.
func listVersion(encoded []byte) string {
	var list metav1.PartialObjectMetadataList
	if raw, ok := fromEnvelope(encoded); ok {
		if list.Unmarshal(raw.Raw) != nil {
			return ""
		}
		return list.ResourceVersion
	}
	var object struct {
		Metadata metav1.ListMeta `json:"metadata"`
	}
	if json.Unmarshal(encoded, &object) != nil {
		return ""
	}
	return object.Metadata.ResourceVersion
}

// fromEnvelope decodes the protobuf envelope of an object. It returns false if the object is not
// encoded in protobuf.
func fromEnvelope(encoded []byte) (runtime.Unknown, bool) {
	var envelope runtime.Unknown
	content, is := bytes.CutPrefix(encoded, protobufPrefix)
	if !is || envelope.Unmarshal(content) != nil {
		return runtime.Unknown{}, false
	}
	return envelope, true
}
