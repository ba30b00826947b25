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

// configs holds the hashes of all watched ConfigMaps and Secrets, and the ScheduledRestarts whose
// targets use each object. An event enqueues only the ScheduledRestarts that depend on its object,
// so the cost of an event does not grow with the number of other ScheduledRestarts.
type configs struct {
	memories *memories
	// settle is the time for which the content of ConfigMaps and Secrets must remain unchanged
	// until it counts as settled. Changes with less time between them belong to the same burst of
	// changes.
	settle time.Duration
	// changed is called with the ScheduledRestarts that depend on an object whose content has
	// changed.
	changed func([]types.NamespacedName)

	mu      sync.Mutex
	records map[podconfig.ID]*podconfig.Record
	// users maps each ConfigMap or Secret to the set of ScheduledRestarts that depend on it.
	users map[podconfig.ID]map[types.NamespacedName]struct{}
}

// configUse is the content of ConfigMaps and Secrets on which the last decision about a
// ScheduledRestart was based.
type configUse struct {
	// encoded lists the ConfigMaps and Secrets that the target uses, in the form that
	// [podconfig.Parse] reads. secrets is true if changes of Secrets also trigger restarts.
	encoded string
	secrets bool
	ids     []podconfig.ID
	// hash is the hash of the content of the objects in ids. since is the time of the last change
	// of that content, or a later time if the exact time is unknown.
	hash  string
	since time.Time
	// restless is the time of the first change in the current burst of changes. parts holds a
	// checksum of each object's content, in the order of the field ids. latest is the object that
	// changed last.
	restless time.Time
	parts    []uint64
	latest   podconfig.ID
}

// knownContent is the hash of the ConfigMaps and Secrets that a target uses, and a time at which
// they had that hash; the time is zero if unknown.
type knownContent struct {
	hash string
	at   time.Time
}

// startedWith returns the content with which the target's pods were started, according to the
// status.
func startedWith(status *tidekeeperv1.ScheduledRestartStatus) knownContent {
	k := knownContent{hash: status.ConfigHash}
	if status.ConfigTime != nil {
		k.at = status.ConfigTime.UTC()
	}
	return k
}

// changedSince reports whether the hash has changed although no object was modified after the time
// k.at. This happens if an edit only removes keys, because managedFields then record no time.
func (k knownContent) changedSince(hash string, modified time.Time) bool {
	return podconfig.SameScope(k.hash, hash) && k.hash != hash && !modified.After(k.at)
}

// clockAhead is the tolerated clock skew of an API server. If the time of a change is further in
// the future, the time at which the change was observed is used instead.
const clockAhead = 5 * time.Minute

func newConfigs(memories *memories, settle time.Duration, changed func([]types.NamespacedName)) *configs {
	c := &configs{
		memories: memories, settle: settle, changed: changed,
		records: map[podconfig.ID]*podconfig.Record{}, users: map[podconfig.ID]map[types.NamespacedName]struct{}{},
	}
	memories.onForget(c.drop)
	return c
}

// set stores the record of a ConfigMap or Secret that was created or modified. If its content has
// changed, set calls the function in the field changed with the ScheduledRestarts that depend on
// it.
func (c *configs) set(r *podconfig.Record) {
	if users, changed := c.put(r); changed {
		c.changed(users)
	}
}

// put stores an object, and returns the ScheduledRestarts that depend on it. changed is false if
// the modification did not affect the object's content.
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

// remove drops the record of a deleted ConfigMap or Secret, and calls the function in the field
// changed with the ScheduledRestarts that depend on it.
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

// content returns the content that the target of a ScheduledRestart uses, with the object that
// changed last, and the time of the last change or a later time. From then on, the function in the
// field changed is called for the ScheduledRestart each time the content changes.
func (c *configs) content(key types.NamespacedName, encoded string, secrets bool, started knownContent, now time.Time) (content *decision.Config) {
	c.memories.with(key, func(m *memory) { content = c.contentOf(m, key, encoded, secrets, started, now) })
	return content
}

// contentOf does the same as the method content. m must be the in-memory state of the
// ScheduledRestart, and the lock of memories must be held.
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

// use registers a ScheduledRestart as a user of its target's ConfigMaps and Secrets.
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

// note records that the content of the used ConfigMaps and Secrets changed at the given time. If
// more than the duration settle has passed since the previous change, a new burst of changes
// begins.
func (u *configUse) note(content podconfig.Content, get func(podconfig.ID) *podconfig.Record, at time.Time, settle time.Duration) {
	u.latest = podconfig.ID{}
	for i, id := range u.ids {
		switch r := get(id); {
		case len(u.parts) > 0 && u.parts[i] != content.Parts[i]:
			u.latest = id
		case len(u.parts) == 0 && r != nil && !r.Modified().IsZero() && r.Modified().Equal(content.Modified):
			// When the content is read for the first time, the object with the latest modification
			// time counts as the last changed object.
			u.latest = id
		}
	}
	if u.hash == "" || at.Sub(u.since) > settle {
		u.restless = at
	}
	u.hash, u.since, u.parts = content.Hash, at, content.Parts
}

// changedAt returns the time at which the given content was last modified. It returns now if that
// time is missing, or more than clockAhead in the future.
func changedAt(content podconfig.Content, now time.Time) time.Time {
	if content.Modified.IsZero() || content.Modified.After(now.Add(clockAhead)) {
		return now
	}
	return content.Modified
}

// forget drops the configUse of a ScheduledRestart, so that the function changed is no longer
// called for it.
func (c *configs) forget(key types.NamespacedName) {
	c.memories.with(key, func(m *memory) {
		c.drop(key, m)
		m.config = nil
	})
}

// drop removes a ScheduledRestart from the users of its ConfigMaps and Secrets. m is the in-memory
// state of the ScheduledRestart, which lists these objects.
func (c *configs) drop(key types.NamespacedName, m *memory) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leave(key, m)
}

// leave does the same as the method drop. The caller must hold the lock mu.
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
