// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package podtimeline

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var epoch = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// at returns the time that is the given number of seconds after the epoch, when all pods are
// created.
func at(seconds int) metav1.Time {
	return metav1.NewTime(epoch.Add(time.Duration(seconds) * time.Second))
}

// podMaker builds pods for tests.
type podMaker struct{ pod corev1.Pod }

// aPod returns a maker for a pod that has just been created, with a container "app".
func aPod() *podMaker {
	m := &podMaker{}
	m.pod.CreationTimestamp = at(0)
	m.pod.Spec.Containers = []corev1.Container{{Name: "app"}}
	return m
}

func (m *podMaker) with(change func(*corev1.Pod)) *podMaker {
	change(&m.pod)
	return m
}

func (m *podMaker) is(kind corev1.PodConditionType, seconds int) *podMaker {
	m.pod.Status.Conditions = append(m.pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: at(seconds)})
	return m
}

func (m *podMaker) isNot(kind corev1.PodConditionType, seconds int, reason, message string) *podMaker {
	m.pod.Status.Conditions = append(m.pod.Status.Conditions, corev1.PodCondition{
		Type: kind, Status: corev1.ConditionFalse, LastTransitionTime: at(seconds), Reason: reason, Message: message,
	})
	return m
}

func (m *podMaker) container(s corev1.ContainerStatus) *podMaker {
	if s.Name == "" {
		s.Name = "app"
	}
	m.pod.Status.ContainerStatuses = append(m.pod.Status.ContainerStatuses, s)
	return m
}

func (m *podMaker) init(name string, s corev1.ContainerStatus) *podMaker {
	s.Name = name
	m.pod.Spec.InitContainers = append(m.pod.Spec.InitContainers, corev1.Container{Name: name})
	m.pod.Status.InitContainerStatuses = append(m.pod.Status.InitContainerStatuses, s)
	return m
}

func running(seconds int) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(seconds)}}
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func terminated(started, finished int, code int32) corev1.ContainerState {
	reason := "Completed"
	if code != 0 {
		reason = "Error"
	}
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: at(started), FinishedAt: at(finished), ExitCode: code, Reason: reason}}
}

// up returns a maker for a Ready pod whose stages took 1, 2, 4, 8 and 16 seconds.
func up() *podMaker {
	return aPod().is(corev1.PodScheduled, 1).is(corev1.PodInitialized, 3).container(corev1.ContainerStatus{State: running(7), Ready: true}).
		is(corev1.ContainersReady, 15).is(corev1.PodReady, 31)
}

func dropCondition(kind corev1.PodConditionType) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		kept := []corev1.PodCondition{}
		for _, c := range p.Status.Conditions {
			if c.Type != kind {
				kept = append(kept, c)
			}
		}
		p.Status.Conditions = kept
	}
}

// describe formats a timeline with a line for each stage. A line contains the stage's duration,
// followed by "~" if it is estimated and "…" if the stage continues, and the reasons for waiting.
func describe(t Timeline) string {
	var b strings.Builder
	for _, s := range t.Stages {
		fmt.Fprintf(&b, "%s %s", s.Name, s.Duration)
		if s.Estimated {
			b.WriteString("~")
		}
		if !s.Done {
			b.WriteString("…")
		}
		for _, w := range s.Waits {
			fmt.Fprintf(&b, " [%s", w.Kind)
			for _, text := range []string{w.Name, w.Reason, w.Message} {
				if text != "" {
					fmt.Fprintf(&b, " %s;", text)
				}
			}
			if w.Duration > 0 {
				fmt.Fprintf(&b, " %s;", w.Duration)
			}
			if w.Restarts > 0 {
				fmt.Fprintf(&b, " restarts %d;", w.Restarts)
			}
			b.WriteString("]")
		}
		b.WriteString("\n")
	}
	if t.Restarts > 0 {
		fmt.Fprintf(&b, "restarts %d\n", t.Restarts)
	}
	if t.Ended {
		b.WriteString("ended\n")
	}
	return b.String()
}

func TestTimelineOf(t *testing.T) {
	const allStages = "scheduled 1s\ninitialized 2s\ncontainers_started 4s\ncontainers_ready 8s\nready 16s\n"
	for _, tt := range []struct {
		name string
		pod  *podMaker
		want string
	}{
		{name: "all stages", pod: up(), want: allStages},
		{name: "just created", pod: aPod(), want: "scheduled 0s…\n"},
		{name: "nothing at all", pod: &podMaker{}, want: "scheduled 0s…\n"},

		// Pods that are waiting, for various reasons.
		{name: "no node", pod: aPod().isNot(corev1.PodScheduled, 0, "Unschedulable", "0/3 nodes are available: 3 Insufficient cpu."),
			want: "scheduled 0s… [Scheduler Unschedulable; 0/3 nodes are available: 3 Insufficient cpu.;]\n"},
		{name: "a scheduling gate", pod: aPod().isNot(corev1.PodScheduled, 0, "SchedulingGated", ""), want: "scheduled 0s… [Scheduler SchedulingGated;]\n"},
		{name: "the second init container", pod: aPod().is(corev1.PodScheduled, 1).isNot(corev1.PodInitialized, 1, "ContainersNotInitialized", "").
			init("fetch", corev1.ContainerStatus{State: terminated(2, 5, 0)}).
			init("migrate", corev1.ContainerStatus{State: running(6), RestartCount: 2}).
			init("warm", corev1.ContainerStatus{State: waiting("PodInitializing", "")}),
			want: "scheduled 1s\ninitialized 0s… [InitContainer fetch; Completed; 3s;] [InitContainer migrate; Running; restarts 2;]\nrestarts 2\n"},
		{name: "the image of an init container", pod: aPod().is(corev1.PodScheduled, 1).
			init("fetch", corev1.ContainerStatus{State: waiting("ImagePullBackOff", `Back-off pulling image "x"`)}),
			want: "scheduled 1s\ninitialized 0s… [Image fetch; ImagePullBackOff; Back-off pulling image \"x\";]\n"},
		{name: "an init container that fails", pod: aPod().is(corev1.PodScheduled, 1).
			init("fetch", corev1.ContainerStatus{State: waiting("CrashLoopBackOff", ""), LastTerminationState: terminated(2, 3, 7), RestartCount: 1}),
			want: "scheduled 1s\ninitialized 0s… [InitContainer fetch; CrashLoopBackOff; ended with exit code 7; restarts 1;]\nrestarts 1\n"},
		{name: "a sidecar that has not started", pod: aPod().is(corev1.PodScheduled, 1).
			init("mesh", corev1.ContainerStatus{State: running(2), Started: new(false)}).
			init("logs", corev1.ContainerStatus{State: running(2), Started: new(true)}).with(func(p *corev1.Pod) {
			always := corev1.ContainerRestartPolicyAlways
			p.Spec.InitContainers[0].RestartPolicy, p.Spec.InitContainers[1].RestartPolicy = &always, &always
		}),
			want: "scheduled 1s\ninitialized 0s… [InitContainer mesh; Running;]\n"},
		{name: "an image", pod: aPod().is(corev1.PodScheduled, 1).is(corev1.PodInitialized, 2).
			container(corev1.ContainerStatus{State: waiting("ErrImagePull", "no such host")}),
			want: "scheduled 1s\ninitialized 1s\ncontainers_started 0s… [Image app; ErrImagePull; no such host;]\n"},
		{name: "one container of two", pod: aPod().with(func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "web"}) }).
			is(corev1.PodScheduled, 1).is(corev1.PodInitialized, 2).
			container(corev1.ContainerStatus{State: running(3)}).container(corev1.ContainerStatus{Name: "web", State: waiting("CreateContainerConfigError", `secret "s" not found`)}),
			want: "scheduled 1s\ninitialized 1s\ncontainers_started 0s… [Container web; CreateContainerConfigError; secret \"s\" not found;]\n"},
		{name: "a startup probe", pod: aPod().is(corev1.PodScheduled, 1).is(corev1.PodInitialized, 2).
			container(corev1.ContainerStatus{State: running(4), Started: new(false)}),
			want: "scheduled 1s\ninitialized 1s\ncontainers_started 2s\ncontainers_ready 0s… [Container app; StartupProbe;]\n"},
		{name: "a readiness probe", pod: aPod().is(corev1.PodScheduled, 1).is(corev1.PodInitialized, 2).
			container(corev1.ContainerStatus{State: running(4), Started: new(true)}).isNot(corev1.ContainersReady, 4, "ContainersNotReady", ""),
			want: "scheduled 1s\ninitialized 1s\ncontainers_started 2s\ncontainers_ready 0s… [Container app; ReadinessProbe;]\n"},
		{name: "a crash loop", pod: aPod().is(corev1.PodScheduled, 1).is(corev1.PodInitialized, 2).
			container(corev1.ContainerStatus{State: waiting("CrashLoopBackOff", "back-off 10s"), LastTerminationState: terminated(4, 5, 1), RestartCount: 1}),
			want: "scheduled 1s\ninitialized 1s\ncontainers_started 2s\ncontainers_ready 0s… [Container app; CrashLoopBackOff; back-off 10s; restarts 1;]\nrestarts 1\n"},
		{name: "readiness gates", pod: aPod().with(func(p *corev1.Pod) {
			p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "lb/ready"}, {ConditionType: "dns/ready"}, {ConditionType: "ok"}}
		}).is(corev1.PodScheduled, 1).is(corev1.PodInitialized, 2).container(corev1.ContainerStatus{State: running(4), Ready: true}).is(corev1.ContainersReady, 5).
			isNot("lb/ready", 0, "Draining", "wait").is("ok", 5),
			want: "scheduled 1s\ninitialized 1s\ncontainers_started 2s\ncontainers_ready 1s\nready 0s… [ReadinessGate lb/ready; Draining; wait;] [ReadinessGate dns/ready; NotSet;]\n"},

		// Pods that were waiting in a completed stage, for various reasons.
		{name: "a readiness gate was last", pod: up().with(func(p *corev1.Pod) {
			p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "early"}, {ConditionType: "late"}, {ConditionType: "later"}}
		}).is("early", 9).is("later", 30).is("late", 20), want: strings.Replace(allStages, "16s", "16s [ReadinessGate later;]", 1)},
		{name: "a readiness gate that opened early", pod: up().with(func(p *corev1.Pod) {
			p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "early"}}
		}).is("early", 9), want: allStages},
		{name: "two reasons at once", pod: aPod().isNot(corev1.PodScheduled, 0, "B", "").isNot(corev1.PodScheduled, 0, "A", ""), want: "scheduled 0s… [Scheduler B;]\n"},
		{name: "two reasons at once, the other way", pod: aPod().isNot(corev1.PodScheduled, 0, "A", "").isNot(corev1.PodScheduled, 0, "B", ""), want: "scheduled 0s… [Scheduler B;]\n"},
		{name: "init containers took long", pod: up().init("fetch", corev1.ContainerStatus{State: terminated(1, 3, 0)}),
			want: strings.Replace(allStages, "initialized 2s", "initialized 2s [InitContainer fetch; Completed; 2s;]", 1)},
		{name: "a restart during the start-up", pod: up().with(func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: "app", State: running(12), LastTerminationState: terminated(7, 11, 137), RestartCount: 1, Ready: true}
		}), want: strings.Replace(allStages, "containers_ready 8s", "containers_ready 8s [Restart app; Error; ended with exit code 137; restarts 1;]", 1) + "restarts 1\n"},
		{name: "the first of three starts is forgotten", pod: up().with(func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: "app", State: running(12), LastTerminationState: terminated(9, 11, 1), RestartCount: 2, Ready: true}
		}), want: "scheduled 1s\ninitialized 2s\ncontainers_started 6s~\ncontainers_ready 6s [Restart app; Error; ended with exit code 1; restarts 2;]\nready 16s\nrestarts 2\n"},
		{name: "a restart while the pod was ready", pod: up().with(func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0] = corev1.ContainerStatus{Name: "app", State: running(60), LastTerminationState: terminated(7, 59, 1), RestartCount: 1, Ready: true}
		}), want: allStages},

		// Pods with conditions that do not occur in a healthy cluster.
		{name: "reordered", pod: up().with(func(p *corev1.Pod) {
			c := p.Status.Conditions
			c[0], c[1], c[2], c[3] = c[3], c[2], c[0], c[1]
		}), want: allStages},
		{name: "repeated, the same", pod: up().is(corev1.PodReady, 31).is(corev1.PodScheduled, 1), want: allStages},
		{name: "repeated, the later one counts", pod: up().isNot(corev1.PodReady, 0, "", "").is(corev1.PodScheduled, 0), want: allStages},
		{name: "never scheduled, says nothing but Ready", pod: aPod().is(corev1.PodReady, 5), want: "scheduled 0s~\ninitialized 0s~\ncontainers_started 0s~\ncontainers_ready 0s~\nready 5s\n"},
		{name: "no condition Initialized", pod: up().with(dropCondition(corev1.PodInitialized)), want: "scheduled 1s\ninitialized 0s~\ncontainers_started 6s\ncontainers_ready 8s\nready 16s\n"},
		{name: "no condition PodScheduled, but a start", pod: up().with(dropCondition(corev1.PodScheduled)).with(func(p *corev1.Pod) { s := at(2); p.Status.StartTime = &s }),
			want: "scheduled 2s~\ninitialized 1s\ncontainers_started 4s\ncontainers_ready 8s\nready 16s\n"},
		{name: "a condition without a time", pod: up().with(func(p *corev1.Pod) { p.Status.Conditions[1].LastTransitionTime = metav1.Time{} }),
			want: "scheduled 1s\ninitialized 0s~\ncontainers_started 6s\ncontainers_ready 8s\nready 16s\n"},
		{name: "no status of the container", pod: up().with(func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }),
			want: "scheduled 1s\ninitialized 2s\ncontainers_started 0s~\ncontainers_ready 12s\nready 16s\n"},
		{name: "Initialized rewritten by the kubelet", pod: up().with(func(p *corev1.Pod) { p.Status.Conditions[1].LastTransitionTime = at(900) }),
			want: "scheduled 1s\ninitialized 6s~\ncontainers_started 0s\ncontainers_ready 8s\nready 16s\n"},
		{name: "everything rewritten but Ready", pod: up().with(func(p *corev1.Pod) {
			for i := range 3 {
				p.Status.Conditions[i].LastTransitionTime = at(900)
			}
		}), want: "scheduled 7s~\ninitialized 0s~\ncontainers_started 0s\ncontainers_ready 24s~\nready 0s\n"},
		{name: "contradicted by a later stage", pod: up().with(func(p *corev1.Pod) {
			p.Status.Conditions[1].Status, p.Status.Conditions[2].Status = corev1.ConditionFalse, corev1.ConditionUnknown
		}), want: "scheduled 1s\ninitialized 0s~\ncontainers_started 6s\ncontainers_ready 0s~\nready 24s\n"},
		{name: "flapped: the last time it became ready", pod: up().with(func(p *corev1.Pod) {
			p.Status.Conditions[2].LastTransitionTime, p.Status.Conditions[3].LastTransitionTime = at(100), at(100)
		}), want: "scheduled 1s\ninitialized 2s\ncontainers_started 4s\ncontainers_ready 1m33s\nready 0s\n"},
		{name: "no longer ready", pod: up().with(func(p *corev1.Pod) {
			p.Status.Conditions[2].Status, p.Status.Conditions[3].Status = corev1.ConditionFalse, corev1.ConditionFalse
			p.Status.ContainerStatuses[0].Ready = false
		}), want: "scheduled 1s\ninitialized 2s\ncontainers_started 4s\ncontainers_ready 0s… [Container app; ReadinessProbe;]\n"},
		{name: "a node's clock is behind", pod: up().with(func(p *corev1.Pod) { p.Status.Conditions[1].LastTransitionTime = at(-2) }),
			want: "scheduled 1s\ninitialized 0s~\ncontainers_started 6s\ncontainers_ready 8s\nready 16s\n"},
		{name: "a container started in 1970", pod: up().with(func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State.Running.StartedAt = metav1.Unix(0, 0) }),
			want: "scheduled 1s\ninitialized 2s\ncontainers_started 0s~\ncontainers_ready 12s\nready 16s\n"},
		{name: "scheduled in the year 9999", pod: aPod().is(corev1.PodScheduled, 0).with(func(p *corev1.Pod) {
			p.Status.Conditions[0].LastTransitionTime = metav1.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
		}), want: "scheduled 0s~\ninitialized 0s…\n"},
		{name: "no creation time: the earliest other time", pod: up().with(func(p *corev1.Pod) { p.CreationTimestamp = metav1.Time{} }),
			want: "scheduled 0s\ninitialized 2s\ncontainers_started 4s\ncontainers_ready 8s\nready 16s\n"},
		{name: "finer times are truncated", pod: up().with(func(p *corev1.Pod) {
			p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(epoch.Add(1900 * time.Millisecond))
		}), want: allStages},

		// Pods that have terminated.
		{name: "completed", pod: aPod().is(corev1.PodScheduled, 1).is(corev1.PodInitialized, 2).isNot(corev1.PodReady, 9, "PodCompleted", "").
			container(corev1.ContainerStatus{State: terminated(4, 8, 0)}).with(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
			want: "scheduled 1s\ninitialized 1s\ncontainers_started 2s\nended\n"},
		{name: "deleted before it was scheduled", pod: aPod().with(func(p *corev1.Pod) { d := at(9); p.DeletionTimestamp = &d }), want: "ended\n"},
		{name: "deleted while ready", pod: up().with(func(p *corev1.Pod) { d := at(90); p.DeletionTimestamp = &d }), want: allStages + "ended\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := tt.pod.pod.DeepCopy()
			got := New(&tt.pod.pod)
			if diff := cmp.Diff(tt.want, describe(got)); diff != "" {
				t.Errorf("timeline (-want +got):\n%s", diff)
			}
			if err := check(got); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(before, &tt.pod.pod); diff != "" {
				t.Errorf("it changed the pod (-before +after):\n%s", diff)
			}
		})
	}
}

func TestSharesAndSlowest(t *testing.T) {
	timeline := New(&up().pod)
	var shares []float64
	for _, s := range timeline.Stages {
		shares = append(shares, s.Share*31)
	}
	if diff := cmp.Diff([]float64{1, 2, 4, 8, 16}, shares); diff != "" {
		t.Errorf("shares of 31 s (-want +got):\n%s", diff)
	}
	if slowest, ok := timeline.Slowest(); !ok || slowest.Name != Ready || !timeline.Ready() || timeline.Total() != 31*time.Second {
		t.Errorf("slowest %v (%t), ready %t, total %s", slowest.Name, ok, timeline.Ready(), timeline.Total())
	}
	if _, ok := (Timeline{}).Slowest(); ok {
		t.Error("of no stages, one is the slowest")
	}
}

func TestAt(t *testing.T) {
	open := New(&aPod().is(corev1.PodScheduled, 1).pod)
	for now, want := range map[int]string{0: "scheduled 1s\ninitialized 0s…\n", 1: "scheduled 1s\ninitialized 0s…\n", 10: "scheduled 1s\ninitialized 9s…\n"} {
		got := open.At(at(now).Time)
		if diff := cmp.Diff(want, describe(got)); diff != "" {
			t.Errorf("after %d s (-want +got):\n%s", now, diff)
		}
		if err := check(got); err != nil {
			t.Errorf("after %d s: %v", now, err)
		}
	}
	if diff := cmp.Diff(0.9, open.At(at(10).Time).Stages[1].Share); diff != "" {
		t.Errorf("share (-want +got):\n%s", diff)
	}
	if open.Stages[1].Duration != 0 {
		t.Error("At changes the timeline it is asked of")
	}
	done := New(&up().pod)
	if diff := cmp.Diff(done, done.At(at(1000).Time)); diff != "" {
		t.Errorf("a pod that is ready gets older (-want +got):\n%s", diff)
	}
}
