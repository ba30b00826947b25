// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// history stores the most recent object of each namespace and name in a watch. It starts empty, and
// is updated only while a rule with a condition needs it.
type history struct{ objects map[string]map[string]any }

// change returns an event's object and its previous version. It returns nil if the event has no
// object, or if the object cannot be decoded.
func (h *history) change(f frame) *fault.Change {
	switch f.event.Type {
	case "ADDED", "MODIFIED", "DELETED":
	default:
		return nil
	}
	object := decoded(f.object)
	if object == nil {
		return nil
	}
	if h.objects == nil {
		h.objects = map[string]map[string]any{}
	}
	key := f.event.Namespace + "/" + f.event.Name
	change := &fault.Change{Object: object, Old: h.objects[key]}
	h.objects[key] = object
	if f.event.Type == "DELETED" {
		delete(h.objects, key)
	}
	return change
}

// written returns the object in a write's body. It returns nil for a JSON patch, whose body is a
// list of operations.
func written(contentType string, body []byte) map[string]any {
	if strings.HasPrefix(contentType, string(types.ApplyYAMLPatchType)) {
		object, err := yaml.YAMLToJSON(body)
		if err != nil {
			return nil
		}
		body = object
	}
	return decoded(body)
}

// decoded decodes an object from JSON or protobuf into the fields of its JSON form. It returns nil
// if that fails. From protobuf, it decodes objects of built-in kinds and PartialObjectMetadata;
// other kinds have no protobuf encoding.
func decoded(encoded []byte) map[string]any {
	envelope, is := fromEnvelope(encoded)
	if is {
		object, err := fromProtobuf(encoded, envelope)
		if err != nil {
			return nil
		}
		if encoded, err = json.Marshal(object); err != nil {
			return nil
		}
	}
	var object map[string]any
	if json.Unmarshal(encoded, &object) != nil {
		return nil
	}
	return object
}

func fromProtobuf(encoded []byte, envelope runtime.Unknown) (runtime.Object, error) {
	if envelope.Kind == "PartialObjectMetadata" {
		object := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: envelope.APIVersion, Kind: envelope.Kind}}
		return object, object.Unmarshal(envelope.Raw)
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(encoded, nil, nil)
	return object, err
}
