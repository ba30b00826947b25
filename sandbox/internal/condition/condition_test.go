// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"strings"
	"testing"
)

func TestHolds(t *testing.T) {
	object := map[string]any{"spec": map[string]any{"replicas": int64(3)}, "metadata": map[string]any{"deletionTimestamp": "2026-01-01T00:00:00Z"}}
	old := map[string]any{"spec": map[string]any{"replicas": int64(5)}, "metadata": map[string]any{}}
	for _, tc := range []struct {
		name, text string
		old        map[string]any
		want       bool
		why        string
	}{
		{name: "a field that is there", text: "has(object.metadata.deletionTimestamp)", want: true},
		{name: "a number", text: "object.spec.replicas > 3"},
		{name: "the version before", text: "object.spec.replicas < old.spec.replicas", old: old, want: true},
		{name: "no version before", text: "old == null", want: true},
		{name: "a field that is not there", text: "object.spec.size == 1", why: "no such key: size"},
		{name: "a value that is neither true nor false", text: "object.spec.replicas", why: "it is 3, and not true or false"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := Compile(tc.text)
			if err != nil {
				t.Fatal(err)
			}
			if is, why := c.Holds(object, tc.old); is != tc.want || !strings.Contains(why, tc.why) || (tc.why == "") != (why == "") {
				t.Errorf("got %t (%s), want %t (%s)", is, why, tc.want, tc.why)
			}
		})
	}
}

func TestCompile(t *testing.T) {
	for text, want := range map[string]string{"object.": "is not an expression in CEL", "1 + 1": "is not true or false, but a int", "pods == 1": "undeclared reference"} {
		if _, err := Compile(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}
