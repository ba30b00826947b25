// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cache/sharedread"
	"tidekeeper.dev/tidekeeper/internal/freeze"
	"tidekeeper.dev/tidekeeper/internal/kube/informers"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/workload"
	"tidekeeper.dev/tidekeeper/internal/workload/podconfig"
)

// configReader reads the ConfigMaps and Secrets that restart targets use.
type configReader struct {
	*configs
	apiReader client.Reader
	// reads lets concurrent callers share a read of the same object from the API server.
	reads sharedread.Reads[podconfig.ID, *podconfig.Record]
	// synced maps each watched kind to a function that reports whether its informer has synced.
	synced map[podconfig.Kind]func() bool
	// podsWatched is true if the manager watches pods.
	podsWatched bool
}

// configKind is a kind of object whose changes can trigger restarts. The field resource is also the
// name of the optional watch of the kind.
type configKind struct {
	kind           podconfig.Kind
	name, resource string
	object         func() client.Object
	list           client.ObjectList
}

// configKinds lists the kinds whose changes can trigger restarts.
var configKinds = []configKind{
	{podconfig.ConfigMap, "ConfigMaps", "configmaps", func() client.Object { return &corev1.ConfigMap{} }, &corev1.ConfigMapList{}},
	{podconfig.Secret, "Secrets", "secrets", func() client.Object { return &corev1.Secret{} }, &corev1.SecretList{}},
}

// follow subscribes to events of the kinds in configKinds that the manager watches.
func (r *configReader) follow(mgr ctrl.Manager) error {
	r.synced, r.podsWatched = map[podconfig.Kind]func() bool{}, freeze.Watched(mgr.GetCache(), &corev1.PodList{})
	for _, k := range configKinds {
		if !freeze.Watched(mgr.GetCache(), k.list) {
			continue
		}
		informer, err := mgr.GetCache().GetInformer(context.Background(), k.object(), cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("get the informer of %s: %w", k.name, err)
		}
		registration, err := informer.AddEventHandler(informers.Handler[*podconfig.Record]{
			Add:    func(record *podconfig.Record, _ bool) { r.reads.Forget(record.ID); r.set(record) },
			Update: func(_, record *podconfig.Record) { r.reads.Forget(record.ID); r.set(record) },
			Delete: func(record *podconfig.Record, _ bool) { r.reads.Forget(record.ID); r.remove(record.ID) },
		})
		if err != nil {
			return fmt.Errorf("follow %s: %w", k.name, err)
		}
		r.synced[k.kind] = registration.HasSynced
	}
	return nil
}

// cached returns the content of the ConfigMaps and Secrets that the target of a ScheduledRestart
// uses, according to the cache. It returns nil if spec.onConfigChange is not set, or if the target
// does not exist.
func (r *configReader) cached(restart *tidekeeperv1.ScheduledRestart, t *workload.State, now time.Time) *decision.Config {
	key := client.ObjectKeyFromObject(restart)
	mode := restart.Spec.OnConfigChange
	if mode == "" || t == nil {
		r.forget(key)
		return nil
	}
	c := &decision.Config{}
	if c.Problem, c.Message = r.problem(mode, t); c.Problem != "" || !r.isSynced() {
		return c
	}
	return r.content(key, t.Config, mode == tidekeeperv1.ConfigMapsAndSecrets, startedWith(&restart.Status), now)
}

// problem returns a reason and a message for the condition Ready if the watches cannot provide the
// target's ConfigMaps and Secrets; "" otherwise.
func (r *configReader) problem(mode tidekeeperv1.ConfigChange, t *workload.State) (reason, message string) {
	needed := configKinds[:1]
	if mode == tidekeeperv1.ConfigMapsAndSecrets {
		needed = configKinds
	}
	for _, k := range needed {
		if r.synced[k.kind] != nil {
			continue
		}
		var watches []string
		for _, k := range needed {
			watches = append(watches, k.resource)
		}
		return tidekeeperv1.ReasonConfigNotWatched, fmt.Sprintf(
			"onConfigChange is %s, but the manager does not watch %s: start it with --optional-watches=%s, or change onConfigChange", mode, k.name, strings.Join(watches, ","))
	}
	if _, ok := podconfig.Parse(t.Config); !ok {
		return tidekeeperv1.ReasonConfigNotWatched, fmt.Sprintf("%s uses more ConfigMaps and Secrets than the %d that onConfigChange can follow", t, podconfig.MaxUses)
	}
	if !r.podsWatched {
		return tidekeeperv1.ReasonPodsNotWatched, "onConfigChange cannot be followed, as the manager does not watch pods: enable its controller nodepool, pod-startup or pod-count"
	}
	return "", ""
}

func (r *configReader) isSynced() bool {
	for _, synced := range r.synced {
		if !synced() {
			return false
		}
	}
	return true
}

// live returns the content of the target's ConfigMaps and Secrets as read from the API server at
// most a second ago. known is the last content according to the cache; nil if unknown. If the hash
// of the content is still known.Hash, the time of the last change is taken from known. A change
// whose time is missing in the objects gets the current time.
//
// The permission to get ConfigMaps and Secrets is granted together with their optional watches.
func (r *configReader) live(ctx context.Context, restart *tidekeeperv1.ScheduledRestart, t *workload.State, known *decision.Config, now time.Time) (*decision.Config, error) {
	ctx, cancel := context.WithTimeout(ctx, podsTimeout)
	defer cancel()
	secrets := restart.Spec.OnConfigChange == tidekeeperv1.ConfigMapsAndSecrets
	uses, _ := podconfig.Parse(t.Config)
	records := map[podconfig.ID]*podconfig.Record{}
	for _, use := range podconfig.Scope(uses, secrets) {
		id := podconfig.ID{Kind: use.Kind, Namespace: restart.Namespace, Name: use.Name}
		record, err := r.reads.Get(ctx, id, now, time.Time{}, func(ctx context.Context) (*podconfig.Record, error) { return r.read(ctx, id) })
		if err != nil {
			return nil, fmt.Errorf("read whether %s has changed: %w", use.Name, err)
		}
		if record != nil {
			records[id] = record
		}
	}
	content := podconfig.ContentOf(restart.Namespace, uses, secrets, func(id podconfig.ID) *podconfig.Record { return records[id] })
	c := &decision.Config{Hash: content.Hash, Changed: changedAt(content, now), Missing: content.Missing, Live: true}
	if known == nil {
		return c, nil
	}
	switch c.Source = known.Source; {
	case known.Hash == c.Hash:
		c.Changed = known.Changed
	case knownContent{known.Hash, known.Changed}.changedSince(c.Hash, c.Changed):
		c.Changed = now
	}
	if c.Changed.Sub(known.Changed) <= r.settle {
		c.Restless = known.Restless
	}
	return c, nil
}

// read returns the compact record of a ConfigMap or Secret from the API server; nil if the object
// does not exist.
func (r *configReader) read(ctx context.Context, id podconfig.ID) (*podconfig.Record, error) {
	for _, k := range configKinds {
		if k.kind != id.Kind {
			continue
		}
		object := k.object()
		if err := r.apiReader.Get(ctx, client.ObjectKey{Namespace: id.Namespace, Name: id.Name}, object); err != nil {
			return nil, client.IgnoreNotFound(err)
		}
		return podconfig.RecordOf(object)
	}
	return nil, nil
}

// readConfig sets Input.Config, the content of the ConfigMaps and Secrets that the target uses. The
// input must already contain the target. If live is true, the objects are read from the API server,
// provided that the input contains their cached content.
func (g *gatherer) readConfig(ctx context.Context, in *decision.Input, live bool) (err error) {
	if !live || in.Config == nil || in.Target == nil {
		in.Config = g.configs.cached(in.Restart, in.Target, in.Now)
		return nil
	}
	in.Config, err = g.configs.live(ctx, in.Restart, in.Target, in.Config, in.Now)
	return err
}

// readChanges determines which predecessors (the ScheduledRestarts in spec.after) must be restarted
// for a change of a ConfigMap or Secret that their status does not show yet.
func (g *gatherer) readChanges(ctx context.Context, in *decision.Input) error {
	for i := range in.After {
		first := in.After[i].Restart
		if first == nil || first.Spec.OnConfigChange == "" {
			continue
		}
		other := &decision.Input{Restart: first, Now: in.Now}
		if _, err := g.targets.read(ctx, g.client, first, other); err != nil {
			return err
		}
		config := g.configs.cached(first, other.Target, in.Now)
		in.After[i].Changed = config != nil && config.Problem == "" && decision.ChangePending(first, config.Hash)
	}
	return nil
}
