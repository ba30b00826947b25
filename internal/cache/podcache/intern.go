// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"runtime"
	"sync"
	"weak"
)

// internTable interns values by key: it keeps a single copy of each value for as long as the value
// is referenced. Its zero value is empty and ready to use.
type internTable[K comparable, V any] struct {
	mu     sync.Mutex
	values map[K]weak.Pointer[V]
}

// intern returns the value of the given key. If the key has no value that is still referenced,
// intern calls `build` to create the value. Callers must not modify the value.
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

// get returns the value of the given key, or nil if the key has no value that is still referenced.
func (t *internTable[K, V]) get(key K) *V {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.values[key].Value()
}

// forget drops a key after its value has been garbage-collected, unless the key has a new value.
func (t *internTable[K, V]) forget(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.values[key].Value() == nil {
		delete(t.values, key)
	}
}
