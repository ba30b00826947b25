// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"runtime"
	"sync"
	"weak"
)

// internTable keeps one copy of the values of each key, as long as it is referenced.
// Its zero value is empty and ready to use.
type internTable[K comparable, V any] struct {
	mu     sync.Mutex
	values map[K]weak.Pointer[V]
}

// intern returns the value of the key, and builds it if none is referenced at the
// moment. The value must not be modified.
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

// get returns the value of the key, or nil if none is referenced at the moment.
func (t *internTable[K, V]) get(key K) *V {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.values[key].Value()
}

// forget drops the key of a value that was collected, unless the key has a new one.
func (t *internTable[K, V]) forget(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.values[key].Value() == nil {
		delete(t.values, key)
	}
}
