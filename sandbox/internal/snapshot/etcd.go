// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// page is the maximum number of objects in a single read from etcd.
const page = 5000

// attempts is the maximum number of attempts to restore a snapshot while other clients write.
const attempts = 5

// eventsLast is the lifetime of restored Events, the API server's default for new Events.
const eventsLast = time.Hour

// Take returns a snapshot of all objects as of the current revision.
func Take(ctx context.Context, etcd clientv3.KV, kubernetes string) (*Snapshot, error) {
	s := &Snapshot{Kubernetes: kubernetes, Taken: time.Now()}
	var err error
	s.Objects, s.Revision, err = read(ctx, etcd)
	return s, err
}

func read(ctx context.Context, etcd clientv3.KV) (objects map[string][]byte, revision int64, err error) {
	objects = map[string][]byte{}
	end := clientv3.GetPrefixRangeEnd(prefix)
	for from := prefix; ; {
		options := []clientv3.OpOption{clientv3.WithRange(end), clientv3.WithLimit(page)}
		if revision > 0 {
			options = append(options, clientv3.WithRev(revision))
		}
		answer, err := etcd.Get(ctx, from, options...)
		if err != nil {
			return nil, 0, fmt.Errorf("read from etcd: %w", err)
		}
		if revision == 0 {
			revision = answer.Header.Revision
		}
		for _, kv := range answer.Kvs {
			objects[string(kv.Key)] = kv.Value
		}
		if !answer.More {
			return objects, revision, nil
		}
		from = string(answer.Kvs[len(answer.Kvs)-1].Key) + "\x00"
	}
}

// Restore writes and deletes objects in etcd until all objects equal the snapshot, and returns the
// number of writes and deletions. It returns an error if, after several attempts, other clients are
// still changing objects.
func (s *Snapshot) Restore(ctx context.Context, etcd *clientv3.Client) (int, error) {
	total := 0
	var left []Change
	for range attempts {
		now, _, err := read(ctx, etcd)
		if err != nil {
			return total, err
		}
		if left = s.changes(now); len(left) == 0 {
			return total, nil
		}
		if err := apply(ctx, etcd, left); err != nil {
			return total, err
		}
		total += len(left)
	}
	return total, fmt.Errorf("objects are changed as fast as they are put back, such as %s: stop the programs that write, and restore again", left[0].Key)
}

// apply carries out the changes one by one, so that each has its own revision, like the API server's
// own writes. A client that has to watch again continues after the last revision that it has seen, and
// would miss the other objects of this revision for good.
func apply(ctx context.Context, etcd *clientv3.Client, changes []Change) error {
	var expiring clientv3.LeaseID
	for _, c := range changes {
		var err error
		switch {
		case c.Value == nil:
			_, err = etcd.Delete(ctx, c.Key)
		case strings.HasPrefix(c.Key, prefix+"events/"):
			if expiring == clientv3.NoLease {
				lease, err := etcd.Grant(ctx, int64(eventsLast/time.Second))
				if err != nil {
					return fmt.Errorf("write to etcd: %w", err)
				}
				expiring = lease.ID
			}
			_, err = etcd.Put(ctx, c.Key, string(c.Value), clientv3.WithLease(expiring))
		default:
			_, err = etcd.Put(ctx, c.Key, string(c.Value))
		}
		if err != nil {
			return fmt.Errorf("write to etcd: %w", err)
		}
	}
	return nil
}

// heartbeats lists the key prefixes of objects that are written even if no user or operator changes
// anything. Below the last prefix, API servers register their own addresses.
var heartbeats = []string{prefix + "leases/", prefix + "events/", prefix + "peerserverleases/"}

// Quiet waits until no object other than Leases and Events has been written for the time `while`.
// If the context is done first, the error names the last write.
func Quiet(ctx context.Context, etcd clientv3.Watcher, while time.Duration) error {
	watch := etcd.Watch(clientv3.WithRequireLeader(ctx), prefix, clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	rest := time.NewTimer(while)
	defer rest.Stop()
	rest.Stop() // Only after etcd has begun to report writes, their absence means something.
	last := "nothing yet"
	for {
		select {
		case <-rest.C:
			return nil
		case answer, ok := <-watch:
			switch {
			case ctx.Err() != nil:
				return fmt.Errorf("it is not quiet, %w: the last write was %s", context.Cause(ctx), last)
			case !ok:
				return fmt.Errorf("etcd has ended the watch")
			case answer.Err() != nil:
				return fmt.Errorf("watch etcd: %w", answer.Err())
			}
			if answer.Created {
				rest.Reset(while)
			}
			for _, event := range answer.Events {
				if what := write(event); what != "" {
					last = what
					rest.Reset(while)
				}
			}
		case <-ctx.Done():
			return fmt.Errorf("it is not quiet, %w: the last write was %s", context.Cause(ctx), last)
		}
	}
}

// beats reports whether the object with the given key is written even in a quiet cluster.
func beats(key string) bool {
	return slices.ContainsFunc(heartbeats, func(beat string) bool { return strings.HasPrefix(key, beat) })
}

// write describes the write that an etcd event reports, such as "the deletion of pods/a/b". It
// returns "" for an object that is written even in a quiet cluster, such as a Lease.
func write(event *clientv3.Event) string {
	key := string(event.Kv.Key)
	if beats(key) {
		return ""
	}
	verb := "a change of "
	switch {
	case event.Type == mvccpb.DELETE:
		verb = "the deletion of "
	case event.IsCreate():
		verb = "the creation of "
	}
	return verb + strings.TrimPrefix(key, prefix)
}
