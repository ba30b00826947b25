// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/workload/podconfig"
)

// configs has the hashes of all watched ConfigMaps and Secrets, and the ScheduledRestarts that depend on each
// object. An event is passed on only to the ScheduledRestarts that use its object, however many others exist.
type configs struct {
	memories *memories
	// settle is the time without changes after which content counts as settled: changes within that time
	// belong together.
	settle time.Duration
	// changed is called with the ScheduledRestarts that depend on a changed object.
	changed func([]types.NamespacedName)

	mu      sync.Mutex
	records map[podconfig.ID]*podconfig.Record
	// users has the ScheduledRestarts that depend on each object.
	users map[podconfig.ID]map[types.NamespacedName]struct{}
}

// configUse is the content that the last decision about a ScheduledRestart was based on.
type configUse struct {
	// encoded lists the ConfigMaps and Secrets that the target uses, and secrets is set if Secrets count.
	encoded string
	secrets bool
	ids     []podconfig.ID
	// hash is the hash of the content, and since is the time of its last change or later.
	hash  string
	since time.Time
	// restless is the time since which changes have followed each other before the content settled. parts has
	// the number of each object's content, and latest is the object that changed last.
	restless time.Time
	parts    []uint64
	latest   podconfig.ID
}

// knownContent is the hash of content, and a time at which the content had that hash; zero if unknown.
type knownContent struct {
	hash string
	at   time.Time
}

// startedWith returns the content that the pods were started with, according to the status.
func startedWith(status *tidekeeperv1.ScheduledRestartStatus) knownContent {
	k := knownContent{hash: status.ConfigHash}
	if status.ConfigTime != nil {
		k.at = status.ConfigTime.UTC()
	}
	return k
}

// changedSince reports whether the content has another hash now, although its objects were not modified after
// the time for which it is known: by an edit that only removes keys, of which managedFields have no time.
func (k knownContent) changedSince(hash string, modified time.Time) bool {
	return podconfig.SameScope(k.hash, hash) && k.hash != hash && !modified.After(k.at)
}

// clockAhead is the tolerated clock skew of an API server: the time of a change that lies further in the
// future is replaced by the time at which the change was seen.
const clockAhead = 5 * time.Minute

func newConfigs(memories *memories, settle time.Duration, changed func([]types.NamespacedName)) *configs {
	c := &configs{
		memories: memories, settle: settle, changed: changed,
		records: map[podconfig.ID]*podconfig.Record{}, users: map[podconfig.ID]map[types.NamespacedName]struct{}{},
	}
	memories.onForget(c.drop)
	return c
}

// set records an object that appeared or changed.
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

// remove records that an object was deleted.
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

// content returns the content that the target of a ScheduledRestart uses, the time of its last change or
// later, and the object that changed last. From then on, changes of the content are reported for the
// ScheduledRestart.
func (c *configs) content(key types.NamespacedName, encoded string, secrets bool, started knownContent, now time.Time) (content *decision.Config) {
	c.memories.with(key, func(m *memory) { content = c.contentOf(m, key, encoded, secrets, started, now) })
	return content
}

// contentOf returns the content of a ScheduledRestart with the given memory.
func (c *configs) contentOf(m *memory, key types.NamespacedName, encoded string, secrets bool, started knownContent, now time.Time) *decision.Config {
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
		at := changedAt(content, now)
		if use.hash == "" && started.changedSince(content.Hash, at) {
			at = now
		}
		use.note(content, func(id podconfig.ID) *podconfig.Record { return c.records[id] }, at, c.settle)
	}
	source := decision.Source{Kind: use.latest.Kind, Name: use.latest.Name}
	if r := c.records[use.latest]; r != nil {
		source.Writers = r.Writers()
	}
	return &decision.Config{Hash: use.hash, Changed: use.since, Restless: use.restless, Source: source, Missing: content.Missing}
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

// note records a change of the content.
func (u *configUse) note(content podconfig.Content, get func(podconfig.ID) *podconfig.Record, at time.Time, settle time.Duration) {
	u.latest = podconfig.ID{}
	for i, id := range u.ids {
		switch r := get(id); {
		case len(u.parts) > 0 && u.parts[i] != content.Parts[i]:
			u.latest = id
		case len(u.parts) == 0 && r != nil && !r.Modified().IsZero() && r.Modified().Equal(content.Modified):
			// The object changed before its content was known.
			u.latest = id
		}
	}
	if u.hash == "" || at.Sub(u.since) > settle {
		u.restless = at
	}
	u.hash, u.since, u.parts = content.Hash, at, content.Parts
}

// changedAt returns the time of the last change of content that was not known before, or a later time.
func changedAt(content podconfig.Content, now time.Time) time.Time {
	if content.Modified.IsZero() || content.Modified.After(now.Add(clockAhead)) {
		return now
	}
	return content.Modified
}

// forget drops the configUse of a ScheduledRestart.
func (c *configs) forget(key types.NamespacedName) {
	c.memories.with(key, func(m *memory) {
		c.drop(key, m)
		m.config = nil
	})
}

// drop removes a ScheduledRestart from the users of the objects in its memory.
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
