// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// kind is the kind of thing that a pool puts on a node.
type kind string

const (
	label      kind = "label"
	annotation kind = "annotation"
	taint      kind = "taint"
)

// slot is one place on a node that holds one value: a label or an annotation
// by its key, or a taint by key:effect, which is how Kubernetes identifies it.
type slot struct {
	kind kind
	key  string
}

func (s slot) String() string { return string(s.kind) + " " + s.key }

func taintKey(key string, effect corev1.TaintEffect) string { return key + ":" + string(effect) }

// noExecute tells whether the slot is that of a taint that evicts pods.
func (s slot) noExecute() bool {
	return s.kind == taint && strings.HasSuffix(s.key, ":"+string(corev1.TaintEffectNoExecute))
}

// record is what pools have put on a node, by the name of the pool. The node
// carries it as an annotation that is written in the same patch as the things
// it records, so that there can never be one without the other.
type record map[string]holding

// holding is what one pool has put on a node, with the values it put there.
type holding map[slot]string

// holdingJSON is the form of a holding on the node. It is stored data: what
// was written by an older version must stay readable.
type holdingJSON struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Taints      map[string]string `json:"taints,omitempty"`
}

func (h *holdingJSON) of(k kind) *map[string]string {
	switch k {
	case label:
		return &h.Labels
	case annotation:
		return &h.Annotations
	default:
		return &h.Taints
	}
}

// parseRecord reads the value of the record annotation. Anybody who may edit
// nodes can write anything there, so an error is to be expected; it means that
// nothing can be told from the text.
func parseRecord(text string) (record, error) {
	if text == "" {
		return record{}, nil
	}
	var stored map[string]holdingJSON
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return nil, fmt.Errorf("the record on the node is not readable: %w", err)
	}
	r := record{}
	for pool, h := range stored {
		for _, k := range []kind{label, annotation, taint} {
			for key, value := range *h.of(k) {
				r.put(pool, slot{k, key}, value)
			}
		}
	}
	return r, nil
}

// String returns the value of the record annotation: JSON with sorted keys, so
// that equal records are equal texts, or "" for an empty record.
func (r record) String() string {
	stored := map[string]holdingJSON{}
	for pool, holding := range r {
		if len(holding) == 0 {
			continue
		}
		var h holdingJSON
		for s, value := range holding {
			values := h.of(s.kind)
			if *values == nil {
				*values = map[string]string{}
			}
			(*values)[s.key] = value
		}
		stored[pool] = h
	}
	if len(stored) == 0 {
		return ""
	}
	text, err := json.Marshal(stored)
	if err != nil {
		panic("a map of strings is always JSON: " + err.Error())
	}
	return string(text)
}

func (r record) put(pool string, s slot, value string) {
	if r[pool] == nil {
		r[pool] = holding{}
	}
	r[pool][s] = value
}

// holds tells whether any pool has recorded that it put this value into the
// slot. Another value there is somebody else's.
func (r record) holds(s slot, value string) bool {
	for _, holding := range r {
		if recorded, ok := holding[s]; ok && recorded == value {
			return true
		}
	}
	return false
}
