// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"runtime"
	"sync"
	"weak"
)

// common keeps one copy of values that are equal by their key, as long as
// somebody uses them.
type common[K comparable, V any] struct {
	mu    sync.Mutex
	known map[K]weak.Pointer[V]
}

// get returns the value of the key, which is made if nobody uses one now. What
// is returned must not be changed.
func (c *common[K, V]) get(key K, build func() *V) *V {
	c.mu.Lock()
	defer c.mu.Unlock()
	if value := c.known[key].Value(); value != nil {
		return value
	}
	if c.known == nil {
		c.known = map[K]weak.Pointer[V]{}
	}
	value := build()
	c.known[key] = weak.Make(value)
	runtime.AddCleanup(value, c.forget, key)
	return value
}

// forget drops the key of a value that is gone, unless there is another by now.
func (c *common[K, V]) forget(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known[key].Value() == nil {
		delete(c.known, key)
	}
}
