// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// annotated returns a Deployment whose pods have the given sandbox.tidekeeper.dev annotations,
// which control the pods' start-up.
func annotated(namespace, name string, replicas int32, annotations ...string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "example.com/app:1"}}},
			},
		},
	}
	for i := 0; i < len(annotations); i += 2 {
		d.Spec.Template.Annotations["sandbox.tidekeeper.dev/"+annotations[i]] = annotations[i+1]
	}
	return d
}

// nowhere returns a pod that does not fit on any node.
func nowhere(namespace string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "nowhere", Namespace: namespace, Labels: map[string]string{"app": "nowhere"}},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"example.com/none": ""}, Containers: []corev1.Container{{Name: "app", Image: "example.com/app:1"}},
		},
	}
}

// step is a pod transition in the output of pods watch -o json.
type step struct {
	Pod, Kind, Name, To, Reason string
	Time                        time.Time
}

// String formats a transition without the pod's name and the time.
func (s step) String() string {
	return strings.Join(strings.Fields(strings.Join([]string{s.Kind, s.Name, s.To, s.Reason}, " ")), " ")
}

// stepsOf returns each pod's transitions in order. It ignores events, which come from a separate
// watch.
func stepsOf(t *testing.T, lines []string) map[string][]step {
	t.Helper()
	steps := map[string][]step{}
	for _, line := range lines {
		var s step
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if s.Kind != "Event" {
			steps[s.Pod] = append(steps[s.Pod], s)
		}
	}
	return steps
}

// TestPodsWatch checks that pods watch prints each pod transition, from Pending to Ready and until
// completion, exactly once, in one line. The API server is killed twice: during transitions and
// while nothing happens. The printed time of each condition must be the same as in the API server.
func TestPodsWatch(t *testing.T) {
	aNamespace(t, "s3")
	w := follow(t, command{args: []string{"pods", "watch", "-n", "s3", "-o", "json"}})
	w.stderr.await(t, 1, `^No such pods yet: waiting for them\. Press Ctrl-C to stop\.$`)
	cluster.Apply(t, nowhere("s3"))
	d := annotated("s3", "web", 3, "initialized-after", "2s", "containers-ready-after", "2s")
	cluster.Apply(t, d)
	lines := w.stdout.await(t, 3, `"name":"Ready","to":"False"`)

	cluster.Component(t, "kill", "kube-apiserver")
	w.stderr.await(t, 1, `^Lost the connection: the cluster at \S+ cannot be reached: .*\. Trying again\.$`)
	cluster.Component(t, "start", "kube-apiserver")
	w.stderr.await(t, 1, `^Connected again\.$`)
	// A pod may have become ready before another pod's condition Ready was printed as False.
	const becomesReady = `"name":"Ready","from":"False","to":"True"`
	lines = append(lines, w.stdout.await(t, 3-strings.Count(strings.Join(lines, "\n"), becomesReady), becomesReady)...)

	cluster.AwaitAPIServer(t)
	pods := &corev1.PodList{}
	if err := cluster.List(t.Context(), pods, client.InNamespace("s3"), client.MatchingLabels{"app": "web"}); err != nil {
		t.Fatal(err)
	}

	cluster.Component(t, "kill", "kube-apiserver")
	w.stderr.await(t, 1, `^Lost the connection`)
	cluster.Component(t, "start", "kube-apiserver")
	w.stderr.await(t, 1, `^Connected again\.$`)
	cluster.AwaitAPIServer(t)
	cluster.Change(t, d, func() { d.Spec.Replicas = new(int32(0)) })
	lines = append(lines, w.stdout.await(t, 3, `"kind":"Deleted"`)...)
	code := w.interrupt(t)
	if err := diff(130, code); err != nil {
		t.Errorf("after Ctrl-C, the exit code %v", err)
	}

	steps := stepsOf(t, append(lines, w.rest...))
	want := strings.Split(`Created
Phase Pending
Condition PodScheduled True
Condition PodReadyToStartContainers False
Condition Initialized True
Container app waiting ContainerCreating
Condition ContainersReady False ContainersNotReady
Condition Ready False ContainersNotReady
Condition PodReadyToStartContainers True
Phase Running
Container app running
Condition ContainersReady True
Condition Ready True
Deleting
Condition PodReadyToStartContainers False
Container app terminated Completed
Condition ContainersReady False PodCompleted
Condition Ready False PodCompleted
Phase Succeeded
Deleted`, "\n")
	for _, pod := range pods.Items {
		var got []string
		for _, s := range steps[pod.Name] {
			got = append(got, s.String())
		}
		if err := diff(want, got); err != nil {
			t.Errorf("pod %s %v", pod.Name, err)
		}
		for _, c := range pod.Status.Conditions {
			if !slices.ContainsFunc(steps[pod.Name], func(s step) bool {
				return s.Name == string(c.Type) && s.To == "True" && s.Time.Equal(c.LastTransitionTime.Time)
			}) {
				t.Errorf("pod %s: no line says that %s is True since %s", pod.Name, c.Type, c.LastTransitionTime)
			}
		}
	}
	// The pod from nowhere has only one condition.
	if err := diff("[Created Phase Pending Condition PodScheduled False Unschedulable]", fmt.Sprint(steps["nowhere"])); err != nil {
		t.Errorf("pod nowhere %v", err)
	}
	if len(steps) != 4 {
		t.Errorf("there are lines about %d pods, want 4", len(steps))
	}
}

// TestPodsWatchForPeople checks that, without -o json, the same lines are printed in columns. Each
// pod that exists at the start has one line, and a pod that is given by name need not exist yet.
func TestPodsWatchForPeople(t *testing.T) {
	aNamespace(t, "watch")
	cluster.Apply(t, nowhere("watch"))
	framework.Eventually(t, "the scheduler has seen the pod", func() error {
		return diff(true, strings.Contains(tide(t, "pods", "timeline", "nowhere", "-n", "watch"), "Unschedulable"))
	})
	w := follow(t, command{args: []string{"pods", "watch", "-n", "watch", "pod/nowhere", "later"}})
	w.stdout.await(t, 1, `^TIME \(UTC\) +POD +WHAT +STATE +WHY$`)
	w.stdout.await(t, 1, `^~\d\d:\d\d:\d\d +nowhere +Found +Pending$`)
	w.stderr.await(t, 1, `^Watching 1 pod, 1 not ready\.$`)
	for _, name := range []string{"other", "later"} {
		pod := nowhere("watch")
		pod.Name, pod.Spec.NodeSelector = name, nil
		cluster.Apply(t, pod)
	}
	lines := w.stdout.await(t, 1, `^ \d\d:\d\d:\d\d +later +Ready +True$`)
	for _, like := range []string{
		`^ \d\d:\d\d:\d\d +later +Created$`, `^~\d\d:\d\d:\d\d +later +Phase +Pending to Running$`,
		`^ \d\d:\d\d:\d\d +later +PodScheduled +True +on node-\d$`, `^~\d\d:\d\d:\d\d +later +container app +waiting +ContainerCreating$`,
	} {
		if n := len(slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return !regexp.MustCompile(like).MatchString(line) })); n != 1 {
			t.Errorf("%d lines are like %s, want 1:\n%s", n, like, strings.Join(lines, "\n"))
		}
	}
	code := w.interrupt(t)
	if code != 130 || strings.Contains(strings.Join(append(lines, w.rest...), "\n"), "other") {
		t.Errorf("exit code %d; lines\n%s", code, strings.Join(append(lines, w.rest...), "\n"))
	}
	// With --history, the lines begin with the pod's creation.
	w = follow(t, command{args: []string{"pods", "watch", "-A", "-l", "app=nowhere", "--history"}})
	w.stdout.await(t, 1, `^NAMESPACE +TIME \(UTC\) +POD`)
	w.stdout.await(t, 1, `^watch +.\d\d:\d\d:\d\d +nowhere +PodScheduled +False +Unschedulable: 0/`)
	w.interrupt(t)
}

// tookItsTime sets the timestamps in the status of a Deployment's ready pod, so that the pod was
// initialized and became ready the given numbers of seconds after its creation. The kubelet does
// not change a ready pod, so the stages have the same durations on any machine.
func tookItsTime(t *testing.T, namespace, name string, initialized, ready int) {
	t.Helper()
	list := &corev1.PodList{}
	if err := cluster.List(t.Context(), list, client.InNamespace(namespace), client.MatchingLabels{"app": name}); err != nil || len(list.Items) != 1 {
		t.Fatalf("%d pods of %s, %v", len(list.Items), name, err)
	}
	pod := &list.Items[0]
	at := func(seconds int) metav1.Time {
		return metav1.Time{Time: pod.CreationTimestamp.Add(time.Duration(seconds) * time.Second)}
	}
	cluster.ChangeStatus(t, pod, func() {
		for i := range pod.Status.Conditions {
			switch c := &pod.Status.Conditions[i]; c.Type {
			case corev1.PodInitialized:
				c.LastTransitionTime = at(initialized)
			case corev1.ContainersReady, corev1.PodReady:
				c.LastTransitionTime = at(ready)
			default:
				c.LastTransitionTime = at(0)
			}
		}
		pod.Status.ContainerStatuses[0].State.Running.StartedAt = at(initialized)
	})
}

// TestPodsTimelineAndSlow checks the timelines of single and several pods, with and without a
// terminal, and the list of the slowest pods.
func TestPodsTimelineAndSlow(t *testing.T) {
	aNamespace(t, "slow")
	cluster.Apply(t, nowhere("slow"))
	cluster.Apply(t, annotated("slow", "image", 1, "behavior", "image-pull-backoff"))
	cluster.Apply(t, annotated("slow", "quick", 1))
	cluster.Apply(t, annotated("slow", "late", 1))
	cluster.Apply(t, annotated("slow", "web", 1))
	if out, err := cluster.Kubectl("", "-n", "slow", "wait", "--for=condition=Available", framework.LongTimeout, "deployment/web", "deployment/late", "deployment/quick"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	tookItsTime(t, "slow", "quick", 0, 0)
	tookItsTime(t, "slow", "late", 1, 4)
	tookItsTime(t, "slow", "web", 1, 6)
	wantLike := func(what, text string, likes ...string) {
		t.Helper()
		for _, like := range likes {
			if !regexp.MustCompile(like).MatchString(text) {
				t.Errorf("%s has no %s:\n%s", what, like, text)
			}
		}
	}

	shown := tide(t, "pods", "timeline", "-n", "slow", "-l", "app=web")
	wantLike("the timeline", shown,
		`^web-\S+: ready 6s after it was created\nslowest: containers ready, 5s: unknown; this stage waits for startup and readiness probes\n`,
		`\nSTAGE +AT \(UTC\) +TOOK \(±1s\)\ncreated +\d\d:\d\d:\d\d\nscheduled +\d\d:\d\d:\d\d +<1s\n`, `\ncontainers ready +\d\d:\d\d:\d\d +5s\n`)
	for columns, like := range map[int]string{
		110: `\ncontainers ready +\S+ +\x1b\[33m5s\x1b\[0m +\x1b\[33m +█{20,}`,
		70:  `\ncontainers ready +\S+ +\x1b\[33m5s\x1b\[0m +\x1b\[33m +█{10,}`,
		50:  `\ncontainers ready +\S+ +\x1b\[33m5s\x1b\[0m\n`,
	} {
		on := command{args: []string{"pods", "timeline", "-n", "slow", "-l", "app=web"}}.runOn(t, columns)
		wantLike(fmt.Sprint("a terminal of ", columns), on.stdout, like)
		for line := range strings.Lines(on.stdout) {
			text := regexp.MustCompile(`\x1b\[\d*m`).ReplaceAllString(strings.TrimSuffix(line, "\n"), "")
			if columns >= 70 && len([]rune(text)) > columns && !strings.HasPrefix(text, "slowest: ") {
				t.Errorf("on a terminal of %d columns a line has %d:\n%s", columns, len([]rune(text)), line)
			}
		}
	}
	wantLike("several pods", tide(t, "pods", "timeline", "-n", "slow", "-l", "app in (web, late, quick)"),
		`\n3 pods, 3 ready: after 4s \(median\), 6s \(web-\S+, the slowest\); containers ready is the slowest stage of 2\n$`)
	var all string
	framework.Eventually(t, "the kubelet has backed off, and the scheduler has found no node", func() error {
		all = tide(t, "pods", "slow", "-n", "slow", "-o", "wide")
		return diff(true, strings.Contains(all, "ImagePullBackOff") && strings.Contains(all, "Unschedulable"))
	})
	wantLike("a pod that no node is for", tide(t, "pods", "timeline", "-n", "slow", "nowhere"),
		`^nowhere: not ready for [0-9ms]+\nslowest: scheduled, [0-9ms]+: Unschedulable: 0/`, `\nscheduled +- +[0-9ms]+ so far +Unschedulable: 0/`)

	rows := fields(tide(t, "pods", "slow", "-n", "slow"))
	if diff := diff(strings.Fields("NAME READY TOOK SLOWEST OF THAT RESTARTS WAITED FOR"), rows[0]); diff != nil {
		t.Errorf("columns %v", diff)
	}
	wantLike("slow", all, `(?m)^nowhere +not yet +[0-9ms]+ +scheduled +[0-9ms]+ +0 +- +[0-9ms]+ +Unschedulable: `,
		`(?m)^image-\S+ +not yet +[0-9ms]+ +containers started +[0-9ms]+ +0 +node-\d +[0-9ms]+ +image of app: ImagePullBackOff: Back-off pulling image "example.com/app:1"$`,
		`(?m)^web-\S+ +yes +6s +containers ready +5s +0 +node-\d `)
	var top []struct {
		Pod     string
		Seconds int
		Slowest struct{ Stage string }
		Stages  []struct{ Name string }
	}
	if err := json.Unmarshal([]byte(tide(t, "pods", "slow", "-n", "slow", "-l", "app in (web, quick)", "--top", "1", "-o", "json")), &top); err != nil ||
		len(top) != 1 || !strings.HasPrefix(top[0].Pod, "web-") || top[0].Slowest.Stage != "containers_ready" || len(top[0].Stages) != 5 {
		t.Errorf("-o json: %+v, %v", top, err)
	}
	wantLike("-o name", tide(t, "pods", "slow", "-n", "slow", "-l", "app=web", "-o", "name"), `^pod/web-\S+\n$`)
	if out := tide(t, "pods", "slow", "-A", "--since", "1h", "--top", "1000"); !strings.HasPrefix(out, "NAMESPACE") || !strings.Contains(out, "nowhere") {
		t.Errorf("-A --since 1h:\n%s", out)
	}

	wantLike("--by-stage", tide(t, "pods", "slow", "-n", "slow", "--by-stage"), `^STAGE +PODS +MEDIAN +WORST +<1s +1s +2–4s +5–9s +10–29s +30–59s +60s to 5m +5m or more\n`,
		`\nscheduled +4 +`, `\ncontainers ready +3 +\S+ +5s( +\d+){8}\n`)
	var stages []struct {
		Stage   string
		Pods    int
		Classes []struct{ Pods int }
	}
	if err := json.Unmarshal([]byte(tide(t, "pods", "slow", "-n", "slow", "--by-stage", "-o", "json")), &stages); err != nil || len(stages) != 5 || stages[0].Pods != 4 || len(stages[0].Classes) != 8 {
		t.Errorf("--by-stage -o json: %+v, %v", stages, err)
	}

	// kubectl's shell completion offers the names of pods, but no name twice.
	eventuallyCompletes(t, func(got string) bool {
		return strings.Contains(got, "nowhere\tPending\n") && !strings.Contains(got, top[0].Pod)
	}, "pods", "timeline", "-n", "slow", top[0].Pod, "")
}

func TestPodsErrors(t *testing.T) {
	noRights := cluster.UserKubeconfig(t, "dev")
	forbidden := "error: pods is forbidden: User \"dev\" cannot list resource \"pods\" in API group \"\" "
	for args, want := range map[string]result{
		"pods watch --server http://127.0.0.1:1":                {code: 4, stderr: "error: the cluster at http://127.0.0.1:1 cannot be reached: connection refused\n"},
		"pods slow --server http://127.0.0.1:1":                 {code: 4, stderr: "error: the cluster at http://127.0.0.1:1 cannot be reached: connection refused\n"},
		"pods watch -n default --kubeconfig " + noRights:        {code: 5, stderr: forbidden + "in the namespace \"default\": see kubectl tide check, and SECURITY.md for the roles\n"},
		"pods slow -A --kubeconfig " + noRights:                 {code: 5, stderr: forbidden + "at the cluster scope: see kubectl tide check, and SECURITY.md for the roles\n"},
		"pods timeline web -n default --kubeconfig " + noRights: {code: 5, stderr: "error: pods \"web\" is forbidden: User \"dev\" cannot get resource \"pods\" in API group \"\" in the namespace \"default\": see kubectl tide check, and SECURITY.md for the roles\n"},
		"pods watch -n none":                                    {code: 3, stderr: "error: there is no Namespace \"none\"\n"},
		"pods slow -n none":                                     {code: 3, stderr: "error: there is no Namespace \"none\"\n"},
		"pods timeline -l app=web -n none":                      {code: 3, stderr: "error: there is no Namespace \"none\"\n"},
		"pods slow --by-stage -o name":                          {code: 1, stderr: "error: --by-stage has no names: write -o json or yaml, or nothing\n"},
		"pods timeline none":                                    {code: 3, stderr: "error: there is no Pod \"none\" in the namespace \"default\"\n"},
		"pods timeline":                                         {code: 1, stderr: "error: write the names of pods, or select them with -l; kubectl tide pods slow covers all pods\n"},
		"pods watch web -A":                                     {code: 1, stderr: "error: names cannot be combined with -A: select the namespace with -n\n"},
		"pods watch web -l app=web":                             {code: 1, stderr: "error: write either the names of pods or -l, not both\n"},
		"pods watch deployment/web":                             {code: 1, stderr: "error: \"deployment/web\" is not a Pod: write NAME or pod/NAME, or select by label with -l\n"},
		"pods watch -o yaml":                                    {code: 1, stderr: "error: -o yaml: write json, or leave it out\n"},
		"pods slow -o xml":                                      {code: 1, stderr: "error: -o xml: write one of json, yaml, name, wide\n"},
		"pods timeline web -o name":                             {code: 1, stderr: "error: -o name: write one of json, yaml\n"},
		"pods slow --top 0":                                     {code: 1, stderr: "error: --top 0: write 1 or more\n"},
		"pods slow --since soon":                                {code: 1, stderr: "error: --since=\"soon\": write a duration such as 30m, 24h or 7d: see kubectl tide pods slow --help\n"},
		"pods slow -n kube-public":                              {stderr: "There are no pods in the namespace kube-public.\n"},
		"pods timeline -n kube-public -l app=none":              {stderr: "There are no pods in the namespace kube-public that match.\n"},
		"pods slwo":                                             {code: 1, stderr: "error: unknown command \"slwo\" for \"kubectl tide pods\": did you mean slow?\n"},
	} {
		if err := diff(want, command{args: strings.Fields(args)}.run(t)); err != nil {
			t.Errorf("kubectl tide %s %v", args, err)
		}
	}
}
