// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/restart/forecast"
	"tidekeeper.dev/tidekeeper/internal/view"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

const (
	// metricsAge and eventsAge are how old what is read without a watch may be.
	metricsAge = 15 * time.Second
	eventsAge  = 10 * time.Second
	// mostEvents is how many objects' events are kept.
	mostEvents = 100
)

// models are what the pages show, each computed once for as long as nothing changes. The mutex
// is held while a page is built.
type models struct {
	mu      sync.Mutex
	cluster Cluster
	now     func() time.Time

	roomKey  string
	room     *view.Room
	keys     capacity.Keys
	problems []string
	losses   []view.PoolLoss
	details  map[string]*view.PoolDetail

	// forecasts have a lock of their own.
	forecasts *forecasts
	metrics   timed[view.NodeMetrics]
	events    map[ObjectRef]timed[[]corev1.Event]
	leader    timed[view.Manager]
	// likes are copies of the pods of workloads.
	likes map[likeName]timed[podOfLike]
	// rights are the answers of access reviews.
	rights map[Right]timed[bool]
}

// timed is something that was computed or read at a time.
type timed[T any] struct {
	key   string
	at    time.Time
	value T
}

// fresh reports whether a value need not be read again.
func (t *timed[T]) fresh(key string, now time.Time, age time.Duration) bool {
	return !t.at.IsZero() && t.key == key && now.Sub(t.at) < age
}

func newModels(cluster Cluster, now func() time.Time) *models {
	return &models{cluster: cluster, now: now, forecasts: newForecasts(now), events: map[ObjectRef]timed[[]corev1.Event]{}, likes: map[likeName]timed[podOfLike]{}, rights: map[Right]timed[bool]{}}
}

// version is the same as long as nothing of the kinds has changed.
func (s *snapshot) version(kinds ...string) string {
	key := ""
	for _, kind := range kinds {
		key += fmt.Sprint(s.versions[kind], s.problems[kind], ";")
	}
	return key
}

// roomOf returns the room in the cluster, nil if nodes, pods or pools cannot be read.
func (r *request) roomOf() *view.Room {
	m := r.models
	if r.snapshot.problem(capacityKinds...) != "" {
		return nil
	}
	if key := r.snapshot.version(capacityKinds...); key != m.roomKey || m.room == nil {
		m.room, m.problems = view.NewRoomWith(&m.keys, r.pools(), r.nodes(), r.pods())
		m.roomKey, m.losses, m.details = key, nil, map[string]*view.PoolDetail{}
	}
	return m.room
}

// losses returns what becomes of the pods of lost nodes and zones.
func (r *request) losses() []view.PoolLoss {
	room := r.roomOf()
	if room != nil && r.models.losses == nil {
		r.models.losses = room.Losses(nil)
	}
	return r.models.losses
}

// nodeMetrics returns what the nodes use.
func (r *request) nodeMetrics() *view.NodeMetrics {
	m := r.models
	if !m.metrics.fresh("", r.now(), metricsAge) {
		m.metrics = timed[view.NodeMetrics]{at: r.now(), value: m.cluster.Metrics(r.ctx)}
	}
	return &m.metrics.value
}

// eventsAbout returns the events about an object; none if they may not be read.
func (r *request) eventsAbout(ref ObjectRef) []corev1.Event {
	m := r.models
	known := m.events[ref]
	if known.fresh("", r.now(), eventsAge) {
		return known.value
	}
	list, err := m.cluster.Events(r.ctx, ref)
	if err != nil {
		list = nil
	}
	if len(m.events) >= mostEvents {
		clear(m.events)
	}
	m.events[ref] = timed[[]corev1.Event]{at: r.now(), value: list}
	return list
}

// manager returns what is known of the manager.
func (r *request) manager() view.Manager {
	m := r.models
	if r.snapshot.lost == "" && !m.leader.fresh("", r.now(), metricsAge) {
		m.leader = timed[view.Manager]{at: r.now(), value: m.cluster.Manager(r.ctx)}
	}
	return m.leader.value
}

// noManager says that no manager runs, and since when; "" if nothing suggests that.
func (r *request) noManager() string {
	if r.snapshot.lost != "" {
		return "" // What is shown is old anyway.
	}
	var unobserved view.Unobserved
	for _, restart := range r.restarts() {
		unobserved.AddRestart(restart, r.now())
	}
	return view.Outdated(r.manager(), unobserved, r.now())
}

// settings returns the manager's settings.
func (r *request) settings() view.Settings { return view.SettingsOf(r.manager().Published) }

// settingsText says what a forecast depends on.
func (r *request) settingsText() string {
	s := r.settings()
	text := fmt.Sprintf("restarts take as long as the last one, or %s", view.FormatDuration(assumedDuration))
	if assumed := s.AssumedText(s.Assumed...); assumed != "" {
		return text + "; the manager is started with " + assumed
	}
	return text
}

// copies returns copies of the restarts, which a forecast changes.
func copies(list []*tidekeeperv1.ScheduledRestart) []*tidekeeperv1.ScheduledRestart {
	copied := make([]*tidekeeperv1.ScheduledRestart, len(list))
	for i, r := range list {
		copied[i] = r.DeepCopy()
	}
	return copied
}

// freezes returns the periods of the freezes that are about each namespace. Without the right to
// read the labels of namespaces, those by label are not counted.
func (r *request) freezes() map[string][]period.Period {
	if r.periods != nil {
		return r.periods
	}
	var list []tidekeeperv1.Freeze
	for _, f := range listOf[*tidekeeperv1.Freeze](r.snapshot, kindFreezes) {
		list = append(list, *f)
	}
	if len(list) == 0 {
		return nil
	}
	namespaces := map[string]map[string]string{}
	for _, restart := range r.restarts() {
		namespaces[restart.Namespace] = map[string]string{corev1.LabelMetadataName: restart.Namespace}
	}
	for _, n := range listOf[*corev1.Namespace](r.snapshot, kindNamespaces) {
		namespaces[n.Name] = n.Labels
	}
	periods := map[string][]period.Period{}
	for name, labels := range namespaces {
		if in := period.In(list, labels, r.now()); len(in) > 0 {
			periods[name] = in
		}
	}
	r.periods = periods
	return periods
}

// targets returns the state of the workloads that are restarted. Those of a kind that may not be
// read are left out, and taken to be healthy.
func (r *request) targets() map[forecast.TargetKey]forecast.Target {
	targets := map[forecast.TargetKey]forecast.Target{}
	for _, restart := range r.restarts() {
		for _, ref := range []tidekeeperv1.TargetRef{restart.Spec.TargetRef, decision.TargetRef(restart.Status.Active, &restart.Spec)} {
			if kind, err := workload.Get(ref); err == nil && r.snapshot.problem(kind.Resource) == "" {
				targets[forecast.KeyOf(restart.Namespace, ref)] = forecast.Target{Unserved: r.snapshot.unserved[kind.Resource]}
			}
		}
	}
	for _, kind := range workload.Kinds {
		for _, o := range r.snapshot.objects[kind.Resource] {
			object, ok := o.(workload.Object)
			if !ok {
				continue
			}
			key := forecast.KeyOf(object.GetNamespace(), kind.Ref(object.GetName()))
			if _, wanted := targets[key]; !wanted {
				continue
			}
			if state, err := kind.State(object); err == nil {
				targets[key] = forecast.Target{State: state}
			}
		}
	}
	r.addPodAges(targets)
	return targets
}

// addPodAges adds the age of the oldest pods where a ScheduledRestart of the namespace limits it.
func (r *request) addPodAges(targets map[forecast.TargetKey]forecast.Target) {
	limited := map[string]bool{}
	for _, restart := range r.restarts() {
		limited[restart.Namespace] = limited[restart.Namespace] || restart.Spec.MaxPodAgeSeconds > 0
	}
	ages := view.PodAges{}
	for _, pod := range r.pods() {
		if limited[pod.Namespace] {
			ages.Add(pod)
		}
	}
	for key, oldest := range ages {
		if t, known := targets[key]; known {
			t.Oldest = oldest
			targets[key] = t
		}
	}
}

// limitsPodAge reports whether a ScheduledRestart limits the age of pods.
func (r *request) limitsPodAge() bool {
	return slices.ContainsFunc(r.restarts(), func(o *tidekeeperv1.ScheduledRestart) bool { return o.Spec.MaxPodAgeSeconds > 0 })
}
