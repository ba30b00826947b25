// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// addFields adds the JSON fields of a type, under the names that encoding/json uses, with path as
// the prefix. A Kubernetes type counts as a single field, because Kubernetes versions its own
// types.
func (s surface) addFields(path string, t reflect.Type, within ...reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	marshals := t.Implements(jsonMarshaler) || reflect.PointerTo(t).Implements(jsonMarshaler) || t.Implements(textMarshaler)
	switch {
	case marshals, strings.HasPrefix(t.PkgPath(), "k8s.io/"):
		s[path] = thing{Type: t.String()}
	case slices.Contains(within, t):
		s[path] = thing{Type: "as above"}
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8, t.Kind() == reflect.Array:
		s.addFields(path+"[]", t.Elem(), within...)
	case t.Kind() == reflect.Map:
		s.addFields(path+"{}", t.Elem(), within...)
	case t.Kind() == reflect.Struct:
		s.addStruct(path, t, append(slices.Clone(within), t))
	default:
		s[path] = thing{Type: jsonKind(t.Kind())}
	}
}

func (s surface) addStruct(path string, t reflect.Type, within []reflect.Type) {
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case field.Anonymous && name == "":
			s.addFields(path, field.Type, within...)
		case field.IsExported():
			if name == "" {
				name = field.Name
			}
			s.addFields(path+"."+name, field.Type, within...)
		}
	}
}

// jsonKind returns the JSON type that encoding/json uses for a Go kind.
func jsonKind(k reflect.Kind) string {
	switch k {
	case reflect.Bool:
		return "boolean"
	case reflect.String, reflect.Slice:
		return "string"
	case reflect.Interface:
		return "any"
	case reflect.Float32, reflect.Float64:
		return "number"
	default:
		return "integer"
	}
}
