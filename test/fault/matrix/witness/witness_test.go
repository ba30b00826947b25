// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// story builds a history.
type story struct{ events []Event }

func (s *story) add(kind watch.EventType, byUser bool, o client.Object) *story {
	o = o.DeepCopyObject().(client.Object)
	if o.GetUID() == "" {
		o.SetUID(types.UID(fmt.Sprintf("%T/%s", o, o.GetName())))
	}
	o.SetResourceVersion(fmt.Sprint(len(s.events) + 1))
	s.events = append(s.events, Event{Type: kind, Object: o, ByUser: byUser})
	return s
}

// user adds a write of a user, and ours one of another client: the manager, or a
// component of Kubernetes.
func (s *story) user(o client.Object) *story { return s.add(watch.Modified, true, o) }
func (s *story) ours(o client.Object) *story { return s.add(watch.Modified, false, o) }
func (s *story) gone(o client.Object) *story { return s.add(watch.Deleted, false, o) }

const (
	sized    = `{"p":{"labels":{"size":"10"}}}`
	sizedAll = `{"p":{"labels":{"size":"10"},"taints":{"pool:NoSchedule":"ours"}}}`
)

// node returns a member of pool p, with labels, taints and record.
func node(labels map[string]string, record string, taints ...corev1.Taint) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{tidekeeperv1.RoleLabelPrefix + "p": ""}}}
	for key, value := range labels {
		n.Labels[key] = value
	}
	if record != "" {
		n.Annotations = map[string]string{tidekeeperv1.OwnershipAnnotation: record}
	}
	n.Spec.Taints = taints
	return n
}

// left returns the node when it is no longer a member.
func left(n *corev1.Node) *corev1.Node {
	delete(n.Labels, tidekeeperv1.RoleLabelPrefix+"p")
	return n
}

var (
	taint  = corev1.Taint{Key: "pool", Value: "ours", Effect: corev1.TaintEffectNoSchedule}
	theirs = corev1.Taint{Key: "theirs", Effect: corev1.TaintEffectNoSchedule}
)

func pool(generation int64, labels map[string]tidekeeperv1.LabelValue, taints ...tidekeeperv1.Taint) *tidekeeperv1.NodePool {
	return &tidekeeperv1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p", Generation: generation},
		Spec:       tidekeeperv1.NodePoolSpec{Labels: labels, Taints: taints, Handler: "runc"},
	}
}

func healthy(p *tidekeeperv1.NodePool) *tidekeeperv1.NodePool {
	p.Status.NodeCount = 1
	p.Status.Conditions = []metav1.Condition{{Type: "Ready", Reason: "Healthy", ObservedGeneration: p.Generation}}
	return p
}

type (
	values = map[string]tidekeeperv1.LabelValue
	is     = map[string]string
)

var poolTaint = tidekeeperv1.Taint{Key: "pool", Value: "ours", Effect: corev1.TaintEffectNoSchedule}

func newStory() *story { return &story{} }

// expect compares the result of a check with what it should report for each story; ""
// is nothing.
func expect(t *testing.T, check string, stories map[string]struct {
	s    *story
	want string
}) {
	t.Helper()
	for name, test := range stories {
		var got []string
		for _, line := range InOrder(test.s.events).Judge() {
			if strings.HasPrefix(line, check+": ") {
				got = append(got, line)
			}
		}
		switch {
		case test.want == "" && len(got) > 0:
			t.Errorf("%s: %q, want nothing", name, got)
		case test.want != "" && (len(got) == 0 || !strings.Contains(got[0], test.want)):
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

type stories = map[string]struct {
	s    *story
	want string
}

func TestTheirsStays(t *testing.T) {
	p := pool(1, values{"size": "10"})
	expect(t, "what others put on a node stays", stories{
		"ours comes beside theirs": {newStory().user(p).user(node(is{"a": "1"}, "", theirs)).ours(node(is{"a": "1", "size": "10"}, sized, theirs)), ""},
		"a label goes":             {newStory().user(p).user(node(is{"a": "1"}, "")).ours(node(nil, "")), `label a, which no pool asks for, was "1" and is ""`},
		"a label changes":          {newStory().user(p).user(node(is{"a": "1"}, "")).ours(node(is{"a": "2"}, "")), `was "1" and is "2"`},
		"a taint goes for a moment": {
			newStory().user(p).user(node(nil, "", theirs)).ours(node(nil, "")).ours(node(nil, "", theirs)), "taint theirs:NoSchedule",
		},
		"a user takes it off":        {newStory().user(p).user(node(is{"a": "1"}, "")).user(node(nil, "")), ""},
		"a key of an older spec":     {newStory().user(p).user(node(is{"size": "10"}, sized)).user(pool(2, nil)).ours(node(nil, "")), ""},
		"a taint of Kubernetes' own": {newStory().user(node(nil, "")).ours(node(nil, "", corev1.Taint{Key: "node.kubernetes.io/not-ready", Effect: "NoExecute"})), ""},
		"the membership is theirs":   {newStory().user(p).user(node(nil, "")).ours(left(node(nil, ""))), "node-role.kubernetes.io/p"},
	})
}

func TestRecorded(t *testing.T) {
	expect(t, "what is put on a node is on record in the same write", stories{
		"both at once":       {newStory().user(node(nil, "")).ours(node(is{"size": "10"}, sizedAll, taint)), ""},
		"the record later":   {newStory().user(node(nil, "")).ours(node(is{"size": "10"}, "")).ours(node(is{"size": "10"}, sized)), "is not on record"},
		"the record earlier": {newStory().user(node(nil, "")).ours(node(nil, sized)), "came on record, and is not there"},
		"both go":            {newStory().user(node(is{"size": "10"}, sized)).ours(node(nil, "")), ""},
		"by a user":          {newStory().user(node(nil, "")).user(node(is{"size": "10"}, "")), ""},
	})
}

func TestShapeKept(t *testing.T) {
	p := pool(1, values{"size": "10"}, poolTaint)
	shaped := func() *story {
		return newStory().user(p).user(node(nil, "")).ours(node(is{"size": "10"}, sizedAll, taint))
	}
	deleting := pool(1, values{"size": "10"}, poolTaint)
	deleting.DeletionTimestamp = &metav1.Time{}
	now := metav1.Now()
	deleting.DeletionTimestamp = &now
	elder := pool(1, values{"size": "20"})
	elder.Name, elder.UID = "a-elder", "e"
	elder.Spec.Selector = &tidekeeperv1.NodeSelector{MatchLabels: values{tidekeeperv1.RoleLabelPrefix + "p": ""}}
	expect(t, "a node keeps its shape", stories{
		"it stays":                     {shaped().ours(node(is{"size": "10"}, sizedAll, taint)), ""},
		"a taint off and on again":     {shaped().ours(node(is{"size": "10"}, sized)).ours(node(is{"size": "10"}, sizedAll, taint)), `it had taint pool:NoSchedule="ours"`},
		"a label of another value":     {shaped().ours(node(is{"size": "11"}, sizedAll, taint)), `it had label size="10"`},
		"the spec asks for it no more": {shaped().user(pool(2, values{"size": "10"})).ours(node(is{"size": "10"}, sized)), ""},
		"another generation keeps it":  {shaped().user(pool(2, values{"size": "10", "b": "1"}, poolTaint)).ours(node(is{"b": "1"}, "")), `it had label size="10"`},
		"the pool is being deleted":    {shaped().user(deleting).ours(node(nil, "")), ""},
		"the node has left":            {shaped().user(left(node(is{"size": "10"}, sizedAll, taint))).ours(left(node(nil, ""))), ""},
		"a user takes it off":          {shaped().user(node(nil, sizedAll)), ""},
		"an older pool asks for it":    {shaped().user(elder).ours(node(is{"size": "20"}, sizedAll, taint)), ""},
	})
}

func TestHealthyIsTrue(t *testing.T) {
	p := pool(1, values{"size": "10"})
	expect(t, "a pool that says it is healthy is", stories{
		"so it is":       {newStory().user(p).user(node(nil, "")).ours(node(is{"size": "10"}, sized)).ours(healthy(pool(1, values{"size": "10"}))), ""},
		"too soon":       {newStory().user(p).user(node(nil, "")).ours(healthy(pool(1, values{"size": "10"}))), "it counts 1 nodes, of which 0"},
		"of an old spec": {newStory().user(p).ours(node(is{"size": "10"}, sized)).user(pool(2, values{"size": "20"})).ours(healthy(pool(2, values{"size": "20"}))), "of which 0"},
		"it was a moment ago": {
			newStory().user(p).ours(node(is{"size": "10"}, sized)).user(node(nil, sized)).ours(healthy(pool(1, values{"size": "10"}))), "",
		},
	})
}

func TestRuntimeClassKept(t *testing.T) {
	class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "node-pool-p", OwnerReferences: []metav1.OwnerReference{{Name: "p", UID: "p"}}}, Handler: "runc"}
	other := pool(2, nil)
	other.Spec.Handler = "kata"
	expect(t, "a RuntimeClass stays while its pool asks for it", stories{
		"deleted without need":     {newStory().user(pool(1, nil)).ours(class).gone(class), "asks for it, with handler runc"},
		"another handler is asked": {newStory().user(pool(1, nil)).ours(class).user(other).gone(class), ""},
		"its pool is gone":         {newStory().user(pool(1, nil)).ours(class).gone(pool(1, nil)).gone(class), ""},
	})
}

func TestCleanBeforeGone(t *testing.T) {
	expect(t, "a pool goes after all of it has gone from the nodes", stories{
		"clean":     {newStory().user(pool(1, nil)).ours(node(nil, sized)).ours(node(nil, "")).gone(pool(1, nil)), ""},
		"not clean": {newStory().user(pool(1, nil)).ours(node(nil, sized)).gone(pool(1, nil)).ours(node(nil, "")), "node n still has it on record"},
	})
}

const (
	tick1 = "2026-01-01T03:00:00Z"
	tick2 = "2026-01-01T04:00:00Z"
)

func asks(tick string) *tidekeeperv1.ScheduledRestart {
	return &tidekeeperv1.ScheduledRestart{
		ObjectMeta: metav1.ObjectMeta{Name: "w", Annotations: map[string]string{tidekeeperv1.RestartNowAnnotation: tick}},
		Spec:       tidekeeperv1.ScheduledRestartSpec{TargetRef: tidekeeperv1.TargetRef{Kind: "Deployment", Name: "w"}},
	}
}

// deployment returns a Deployment of two pods with this number of updated pods.
func deployment(restartedAt string, updated int32) *appsv1.Deployment {
	replicas := int32(2)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "w"}, Spec: appsv1.DeploymentSpec{Replicas: &replicas}}
	d.Status = appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: updated, AvailableReplicas: 2}
	if restartedAt != "" {
		d.Spec.Template.Annotations = map[string]string{tidekeeperv1.RestartedAtAnnotation: restartedAt}
	}
	return d
}

func TestTickOnce(t *testing.T) {
	expect(t, "a template is written for a tick, and once for each", stories{
		"for its tick":           {newStory().user(asks(tick1)).user(deployment("", 2)).ours(deployment(tick1, 2)), ""},
		"for no tick":            {newStory().user(asks(tick1)).user(deployment("", 2)).ours(deployment("2026-01-01T03:00:01Z", 2)), "which is not a tick"},
		"for one not asked yet":  {newStory().user(deployment("", 2)).ours(deployment(tick1, 2)).user(asks(tick1)), "which is not a tick"},
		"a second time":          {newStory().user(asks(tick1)).user(deployment("", 2)).ours(deployment(tick1, 2)).user(deployment("", 2)).ours(deployment(tick1, 2)), "a second time"},
		"another way to say it":  {newStory().user(asks(tick1)).user(deployment("", 2)).ours(deployment(tick1, 2)).ours(deployment("2026-01-01T04:00:00+01:00", 2)), "a second time"},
		"two ticks":              {newStory().user(asks(tick1)).user(deployment("", 2)).ours(deployment(tick1, 2)).user(asks(tick2)).ours(deployment(tick2, 2)), ""},
		"a person's own restart": {newStory().user(deployment("", 2)).user(deployment("2026-01-01T03:00:01Z", 2)), ""},
		"its status only":        {newStory().user(asks(tick1)).user(deployment(tick1, 2)).ours(deployment(tick1, 1)), ""},
	})
}

func TestOneAtATime(t *testing.T) {
	expect(t, "of one workload, one restart at a time", stories{
		"after the other":   {newStory().user(deployment("", 2)).ours(deployment(tick1, 2)).ours(deployment(tick1, 1)).ours(deployment(tick1, 2)).ours(deployment(tick2, 2)), ""},
		"in the midst":      {newStory().user(deployment("", 2)).ours(deployment(tick1, 2)).ours(deployment(tick1, 1)).ours(deployment(tick2, 1)), "while a rollout was under way"},
		"in a user's midst": {newStory().user(deployment("", 1)).ours(deployment(tick1, 1)), "while a rollout was under way"},
	})
}

func TestAfterTheFirst(t *testing.T) {
	at, err := time.Parse(time.RFC3339, tick1)
	if err != nil {
		t.Fatal(err)
	}
	active := func(r *tidekeeperv1.ScheduledRestart) *tidekeeperv1.ScheduledRestart {
		r.Status.Active = &tidekeeperv1.ActiveRestart{ScheduledTime: metav1.Time{Time: at}}
		return r
	}
	first := func() *tidekeeperv1.ScheduledRestart {
		r := asks(tick1)
		r.Name, r.Spec.TargetRef.Name = "first", "other"
		return r
	}
	next := func() *tidekeeperv1.ScheduledRestart {
		r := asks(tick1)
		r.Spec.After = []string{"first"}
		return r
	}
	expect(t, "a restart comes after those that come first", stories{
		"after it":      {newStory().user(deployment("", 2)).ours(active(first())).user(next()).ours(first()).ours(active(next())).ours(deployment(tick1, 2)), ""},
		"meanwhile":     {newStory().user(deployment("", 2)).ours(active(first())).ours(active(next())).ours(deployment(tick1, 2)), "restarted by w while first was restarting"},
		"by a user":     {newStory().user(deployment("", 2)).ours(active(first())).ours(active(next())).user(deployment(tick1, 2)), ""},
		"it is deleted": {newStory().user(deployment("", 2)).ours(active(first())).gone(active(first())).ours(active(next())).ours(deployment(tick1, 2)), ""},
		"without order": {newStory().user(deployment("", 2)).ours(active(first())).ours(active(asks(tick1))).ours(deployment(tick1, 2)), ""},
	})
}

func TestRecordedOnce(t *testing.T) {
	with := func(ticks ...string) *tidekeeperv1.ScheduledRestart {
		r := asks("")
		for _, text := range ticks {
			var tick metav1.Time
			if err := tick.UnmarshalQueryParameter(text); err != nil {
				t.Fatal(err)
			}
			r.Status.History = append(r.Status.History, tidekeeperv1.RestartRecord{ScheduledTime: tick, StartedTime: &tick})
		}
		return r
	}
	expect(t, "a tick is recorded once", stories{
		"once each":       {newStory().ours(with(tick1)).ours(with(tick2, tick1)), ""},
		"twice":           {newStory().ours(with(tick1)).ours(with(tick1, tick1)), "was started twice"},
		"a record is cut": {newStory().ours(with(tick2, tick1)).ours(with(tick2)), "had 2 records and has 1"},
	})
}

func TestToldOnce(t *testing.T) {
	event := func(name, note string, count int32) *corev1.Event {
		e := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: name}, Type: "Normal", Reason: "RestartSucceeded", Message: note, InvolvedObject: corev1.ObjectReference{Kind: "ScheduledRestart"}, ReportingController: "tidekeeper"}
		if count > 0 {
			e.Series = &corev1.EventSeries{Count: count}
		}
		return e
	}
	expect(t, "a tick is reported once", stories{
		"once":                  {newStory().ours(event("a", "x", 0)), ""},
		"once more, by another": {newStory().ours(event("a", "x", 0)).ours(event("b", "x", 0)), ""},
		"three times":           {newStory().ours(event("a", "x", 0)).ours(event("b", "x", 0)).ours(event("c", "x", 0)), "was reported again, 3 times"},
		"again by the same":     {newStory().ours(event("a", "x", 0)).ours(event("a", "x", 2)), "was reported again, 2 times"},
		"three things":          {newStory().ours(event("a", "x", 0)).ours(event("b", "y", 0)).ours(event("c", "z", 0)), ""},
	})
}

func TestInOrder(t *testing.T) {
	s := newStory().user(pool(1, nil)).ours(pool(2, nil)).gone(pool(2, nil))
	shuffled := []Event{s.events[2], s.events[0], s.events[1], s.events[0]}
	h := InOrder(shuffled)
	if len(h) != 3 || h[0].Before != nil || h[1].Before != h[0].Object || h[2].Before != h[1].Object {
		t.Errorf("the history is %v", h)
	}
}
