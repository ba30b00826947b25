// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/workload/podconfig"
)

// configs knows the content of all ConfigMaps and Secrets that are watched, by its hashes, and
// which ScheduledRestarts it matters to. So an event costs a look at the ScheduledRestarts that use its object,
// however many others there are.
type configs struct {
	memories *memories
	// settle is how long content must not have changed: changes within that time belong together.
	settle time.Duration
	// changed is called with the ScheduledRestarts that an event matters to.
	changed func([]types.NamespacedName)

	mu      sync.Mutex
	records map[podconfig.ID]*podconfig.Record
	// users are the ScheduledRestarts that an object matters to.
	users map[podconfig.ID]map[types.NamespacedName]struct{}
}

// configUse is the content that a ScheduledRestart was last decided about.
type configUse struct {
	// encoded has the ConfigMaps and Secrets of its target, and secrets says that Secrets count.
	encoded string
	secrets bool
	ids     []podconfig.ID
	// hash is that of the content, and since is when it became that, or later.
	hash  string
	since time.Time
	// restless is since when changes have followed each other before the content had settled, parts
	// are the numbers of the objects' contents, and latest is the object that changed last.
	restless time.Time
	parts    []uint64
	latest   podconfig.ID
}

// clockAhead is how far the clock of an API server may be ahead of the local clock: a change that is
// noted with a later time counts from when it was seen.
const clockAhead = 5 * time.Minute

func newConfigs(memories *memories, settle time.Duration, changed func([]types.NamespacedName)) *configs {
	c := &configs{
		memories: memories, settle: settle, changed: changed,
		records: map[podconfig.ID]*podconfig.Record{}, users: map[podconfig.ID]map[types.NamespacedName]struct{}{},
	}
	memories.onForget(c.drop)
	return c
}

// set takes in an object that appeared or changed.
func (c *configs) set(r *podconfig.Record) {
	if users, changed := c.put(r); changed {
		c.changed(users)
	}
}

// put stores an object. It returns the ScheduledRestarts that the object matters to, and whether its content
// has changed, and not something else of it.
func (c *configs) put(r *podconfig.Record) (users []types.NamespacedName, changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.records[r.ID]
	c.records[r.ID] = r
	if old != nil && old != r {
		if r.Follow(old); old.SameContent(r) {
			return nil, false
		}
	}
	return c.usersOf(r.ID), true
}

// remove takes in that an object is gone.
func (c *configs) remove(id podconfig.ID) {
	c.mu.Lock()
	delete(c.records, id)
	users := c.usersOf(id)
	c.mu.Unlock()
	c.changed(users)
}

func (c *configs) usersOf(id podconfig.ID) []types.NamespacedName {
	return slices.Collect(maps.Keys(c.users[id]))
}

// content returns the content that the target of a ScheduledRestart uses, when it became that,
// or later, and the object that has changed. From then on changes of the content matter to it.
func (c *configs) content(key types.NamespacedName, encoded string, secrets bool, now time.Time) (content *decision.Config) {
	c.memories.with(key, func(m *memory) { content = c.contentOf(m, key, encoded, secrets, now) })
	return content
}

// contentOf returns the content of a ScheduledRestart with the given memory.
func (c *configs) contentOf(m *memory, key types.NamespacedName, encoded string, secrets bool, now time.Time) *decision.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	uses, _ := podconfig.Parse(encoded)
	if m.config == nil || m.config.encoded != encoded || m.config.secrets != secrets {
		c.leave(key, m)
		m.config = c.use(key, encoded, secrets, uses)
	}
	use := m.config
	content := podconfig.ContentOf(key.Namespace, uses, secrets, func(id podconfig.ID) *podconfig.Record { return c.records[id] })
	if use.hash != content.Hash {
		use.note(content, func(id podconfig.ID) *podconfig.Record { return c.records[id] }, changedAt(content, now), c.settle)
	}
	source := decision.Source{Kind: use.latest.Kind, Name: use.latest.Name}
	if r := c.records[use.latest]; r != nil {
		source.Writers = r.Writers()
	}
	return &decision.Config{Hash: use.hash, Changed: use.since, Restless: use.restless, Source: source}
}

// use begins a use by a ScheduledRestart.
func (c *configs) use(key types.NamespacedName, encoded string, secrets bool, uses []podconfig.Use) *configUse {
	use := &configUse{encoded: encoded, secrets: secrets}
	for _, u := range podconfig.Scope(uses, secrets) {
		id := podconfig.ID{Kind: u.Kind, Namespace: key.Namespace, Name: u.Name}
		use.ids = append(use.ids, id)
		if c.users[id] == nil {
			c.users[id] = map[types.NamespacedName]struct{}{}
		}
		c.users[id][key] = struct{}{}
	}
	return use
}

// note takes in that the content has changed at a time.
func (u *configUse) note(content podconfig.Content, get func(podconfig.ID) *podconfig.Record, at time.Time, settle time.Duration) {
	u.latest = podconfig.ID{}
	for i, id := range u.ids {
		switch r := get(id); {
		case len(u.parts) > 0 && u.parts[i] != content.Parts[i]:
			u.latest = id
		case len(u.parts) == 0 && r != nil && !r.Modified().IsZero() && r.Modified().Equal(content.Modified):
			// Before it was known.
			u.latest = id
		}
	}
	if u.hash == "" || at.Sub(u.since) > settle {
		u.restless = at
	}
	u.hash, u.since, u.parts = content.Hash, at, content.Parts
}

// changedAt returns when a content that was not known before changed last, or later.
func changedAt(content podconfig.Content, now time.Time) time.Time {
	if content.Modified.IsZero() || content.Modified.After(now.Add(clockAhead)) {
		return now
	}
	return content.Modified
}

// forget drops the use of a ScheduledRestart.
func (c *configs) forget(key types.NamespacedName) {
	c.memories.with(key, func(m *memory) {
		c.drop(key, m)
		m.config = nil
	})
}

// drop drops the users of the objects in a memory.
func (c *configs) drop(key types.NamespacedName, m *memory) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leave(key, m)
}

// leave is drop, under the lock.
func (c *configs) leave(key types.NamespacedName, m *memory) {
	if m.config == nil {
		return
	}
	for _, id := range m.config.ids {
		if delete(c.users[id], key); len(c.users[id]) == 0 {
			delete(c.users, id)
		}
	}
}
