// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"runtime"
	"sync"
	"weak"
)

// internTable keeps a single copy of the value of each key, as long as it is referenced. Its
// zero value is empty and ready to use.
type internTable[K comparable, V any] struct {
	mu     sync.Mutex
	values map[K]weak.Pointer[V]
}

// intern returns the value of the key, and builds the value if none is referenced. The value
// must not be modified.
func (t *internTable[K, V]) intern(key K, build func() *V) *V {
	t.mu.Lock()
	defer t.mu.Unlock()
	if value := t.values[key].Value(); value != nil {
		return value
	}
	if t.values == nil {
		t.values = map[K]weak.Pointer[V]{}
	}
	value := build()
	t.values[key] = weak.Make(value)
	runtime.AddCleanup(value, t.forget, key)
	return value
}

// get returns the value of the key; nil if none is referenced.
func (t *internTable[K, V]) get(key K) *V {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.values[key].Value()
}

// forget drops the key of a value that was garbage-collected, unless the key has a new value.
func (t *internTable[K, V]) forget(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.values[key].Value() == nil {
		delete(t.values, key)
	}
}
