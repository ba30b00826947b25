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

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/text"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestRestartsNowListHistory requests a restart with the plugin, and checks that it runs and is
// listed.
func TestRestartsNowListHistory(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "now", 2)
	aNamespace(t, "now")
	aDeployment(t, "now", "web")
	aDeployment(t, "now", "never")
	r := aRestart(t, "now", "web", "0 3 * * 1-5", func(r *tidekeeperv1.ScheduledRestart) { r.Spec.TimeZone = "Europe/Berlin" })
	aRestart(t, "now", "never", "@daily", func(r *tidekeeperv1.ScheduledRestart) { r.Spec.Suspend = true })
	eventuallyStatus(t, "now", "web", "Scheduled")
	eventuallyStatus(t, "now", "never", "Suspended")

	began := time.Now().Truncate(time.Second)
	out := tide(t, "restarts", "now", "web", "-n", "now")
	cluster.Refresh(t, r)
	asked := r.Annotations[tidekeeperv1.RestartNowAnnotation]
	if want := "scheduledrestart.tidekeeper.dev/web: requested a restart of Deployment web at " + asked + "\n"; out != want {
		t.Errorf("now prints %q, want %q", out, want)
	}
	if tick, err := time.Parse("2006-01-02T15:04:05Z", asked); err != nil || tick.Before(began) || tick.After(time.Now()) {
		t.Errorf("requested for %s, want now: %v", asked, err)
	}
	eventuallyStatus(t, "now", "web", "Succeeded")

	rows := fields(tide(t, "restarts", "-n", "now"))
	if diff := cmp.Diff(strings.Fields("NAME TARGET SCHEDULE STATUS LAST OUTCOME SUCCESS NEXT (UTC)"), rows[0]); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(strings.Fields("never Deployment/never @daily Suspended - - never -"), rows[1]); diff != "" {
		t.Errorf("a suspended one (-want +got):\n%s", diff)
	}
	if got := strings.Join(rows[2], " "); !regexp.MustCompile(`^web Deployment/web 0 3 \* \* 1-5 Scheduled [0-9ms]+ Succeeded [0-9ms]+ (today|tomorrow|[MTWFS][a-z]{2}) 0[12]:00 \(in \w+\)$`).MatchString(got) {
		t.Errorf("the list says %q", got)
	}
	history := tide(t, "restarts", "history", "web", "-n", "now")
	if !regexp.MustCompile(`^TICK +TRIGGER +OUTCOME +WAITED +TOOK +PODS +READY IN +WORST +MESSAGE\n\S+ \S+ UTC +Request +Succeeded( +[0-9ms]+){2} +2( +[0-9ms]+){2}\n$`).MatchString(history) {
		t.Errorf("the history is\n%s", history)
	}
	var records []tidekeeperv1.RestartRecord
	if err := json.Unmarshal([]byte(tide(t, "restarts", "history", "web", "-n", "now", "-o", "json")), &records); err != nil || len(records) != 1 || at(records[0].ScheduledTime.Time) != asked {
		t.Errorf("the history as JSON: %+v, %v", records, err)
	}

	if got := tide(t, "restarts", "-A", "-l", "app=web", "-o", "jsonpath={.items[*].metadata.name}"); got != "web" {
		t.Errorf("-A -l -o jsonpath: %q", got)
	}
	var list tidekeeperv1.ScheduledRestartList
	if err := json.Unmarshal([]byte(tide(t, "restarts", "-n", "now", "-o", "json")), &list); err != nil || len(list.Items) != 2 || list.Items[0].Kind != "ScheduledRestart" {
		t.Errorf("-o json: %d items, %v", len(list.Items), err)
	}
	if got := tide(t, "restarts", "-n", "now", "-o", "yaml"); !strings.Contains(got, "kind: ScheduledRestart\n") {
		t.Errorf("-o yaml:\n%s", got)
	}
	if rows := fields(tide(t, "restarts", "-A", "-o", "wide")); rows[0][0] != "NAMESPACE" || rows[1][0] != "now" || rows[0][len(rows[0])-1] != "MESSAGE" {
		t.Errorf("-A -o wide: %q", rows)
	}
}

// TestRestartsOlderThan checks that --older-than selects workloads by the age of their pods. The
// restart history is used instead if there are no pods, or if the user may not list pods.
func TestRestartsOlderThan(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "older", 1)
	aNamespace(t, "older")
	aDeployment(t, "older", "web")
	for _, name := range []string{"web", "gone"} {
		aRestart(t, "older", name, "@daily", func(r *tidekeeperv1.ScheduledRestart) { r.Spec.Suspend = true })
	}
	list := func(age string, flags ...string) string {
		t.Helper()
		return tide(t, append([]string{"restarts", "-n", "older", "--older-than", age, "-o", "name"}, flags...)...)
	}
	const web, gone = "scheduledrestart.tidekeeper.dev/web\n", "scheduledrestart.tidekeeper.dev/gone\n"
	// Neither workload has ever been restarted, but the pods of "web" are new, and "gone" has no
	// pods.
	if got := list("24h"); got != gone {
		t.Errorf("--older-than 24h: %q", got)
	}
	framework.Eventually(t, "the pods are older than a second", func() error { return diff(gone+web, list("1s")) })
	cluster.Apply(t, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "older", Name: "blind"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"tidekeeper.dev"}, Resources: []string{"scheduledrestarts"}, Verbs: []string{"get", "list"}},
	}})
	cluster.Apply(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "older", Name: "blind"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "blind"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "blind"}},
	})
	framework.Eventually(t, "without the right to list pods, the last success counts", func() error {
		r := command{args: []string{"restarts", "-n", "older", "--older-than", "24h", "-o", "name", "--as", "blind"}}.run(t)
		if r.code != 0 || r.stdout != gone+web || !strings.Contains(r.stderr, "note: you may not list the pods of older: there, only the last success counts\n") {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
}

// TestRestartsHistoryTellsPodStartup checks that the history shows the start-up time of the new
// pods, and that this time is shorter than in the previous restart.
func TestRestartsHistoryTellsPodStartup(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "ready", 2)
	aNamespace(t, "ready")
	aDeployment(t, "ready", "web")
	r := aRestart(t, "ready", "web", "@daily", nil)
	eventuallyStatus(t, "ready", "web", "Scheduled")
	restart := func(readyAfter string) {
		t.Helper()
		patch := `{"spec":{"strategy":{"rollingUpdate":{"maxSurge":"100%"}},"template":{"metadata":{"annotations":{"sandbox.tidekeeper.dev/containers-ready-after":"` + readyAfter + `"}}}}}`
		for _, args := range [][]string{{"patch", "deployment", "web", "-p", patch}, {"rollout", "status", "deployment/web", framework.LongTimeout}} {
			if out, err := cluster.Kubectl("", append([]string{"-n", "ready"}, args...)...); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
		before := len(r.Status.History)
		tide(t, "restarts", "now", "web", "-n", "ready")
		framework.Eventually(t, "web is restarted", func() error {
			cluster.Refresh(t, r)
			return diff(before+1, len(r.Status.History))
		})
	}
	restart("3s")
	restart("0s")
	record := r.Status.History[0].PodStartup
	if before := r.Status.History[1].PodStartup; before == nil || before.Pods != 2 || before.MedianSeconds < 2 { // Each duration is rounded to whole seconds.
		t.Fatalf("pods that are ready after 3 s: %+v", before)
	} else if diff := cmp.Diff(podStartup(t, "ready", "web", before), record); diff != "" {
		t.Fatalf("the record (-of the pods' own times +got):\n%s", diff)
	}
	median, worst := text.SecondsWithChange(record.MedianSeconds, record.MedianChangeSeconds), text.SecondsWithChange(record.MaxSeconds, record.MaxChangeSeconds)
	history := tide(t, "restarts", "history", "web", "-n", "ready")
	if !regexp.MustCompile(`READY IN +WORST +MESSAGE\n.* 2 +` + regexp.QuoteMeta(median) + ` +` + regexp.QuoteMeta(worst) + `\n.* 2 +[0-9ms]+ +[0-9ms]+\n$`).MatchString(history) {
		t.Errorf("the history is not of %+v:\n%s", record, history)
	}
	framework.Eventually(t, "an event says the same", func() error {
		events := cluster.Events(t, "ScheduledRestart", "web")
		want := fmt.Sprintf("; new pods were ready in %s, at worst %s", median, worst)
		if !slices.ContainsFunc(events, func(e string) bool {
			return strings.HasPrefix(e, "Normal RestartSucceeded: restarted Deployment web, 2 pods in ") && strings.HasSuffix(e, want)
		}) {
			return fmt.Errorf("the events lack %q: %q", want, events)
		}
		return nil
	})
}

// podStartup summarizes the start-up times of a Deployment's two pods, as computed from the pods'
// timestamps, and compares them with the start-up `before`.
func podStartup(t *testing.T, namespace, name string, before *tidekeeperv1.PodStartup) *tidekeeperv1.PodStartup {
	t.Helper()
	list := &corev1.PodList{}
	if err := cluster.List(t.Context(), list, client.InNamespace(namespace), client.MatchingLabels{"app": name}); err != nil {
		t.Fatal(err)
	}
	var took []int32
	for i := range list.Items {
		if pod := &list.Items[i]; pod.DeletionTimestamp == nil {
			took = append(took, int32(pods.Condition(pod, corev1.PodReady).LastTransitionTime.Sub(pod.CreationTimestamp.Time).Seconds()))
		}
	}
	slices.Sort(took)
	if len(took) != 2 {
		t.Fatalf("there are %d pods of %s, want 2", len(took), name)
	}
	s := &tidekeeperv1.PodStartup{Pods: 2, MedianSeconds: took[0], MaxSeconds: took[1]}
	s.MedianChangeSeconds, s.MaxChangeSeconds = new(s.MedianSeconds-before.MedianSeconds), new(s.MaxSeconds-before.MaxSeconds)
	return s
}

// TestRestartsSuspendResume checks the commands suspend and resume, including resume after the
// failure limit was reached.
func TestRestartsSuspendResume(t *testing.T) {
	cluster.StartManager(t)
	cluster.AddNodes(t, "sus", 1)
	aNamespace(t, "sus")
	aDeployment(t, "sus", "web")
	r := aRestart(t, "sus", "web", "0 3 * * *", nil)
	eventuallyStatus(t, "sus", "web", "Scheduled")
	const name = "scheduledrestart.tidekeeper.dev/web"
	for _, step := range []struct{ verb, want, status string }{
		{"resume", name + " is not suspended; next start ", "Scheduled"},
		{"suspend", name + " suspended\n", "Suspended"},
		{"suspend", name + " is already suspended\n", "Suspended"},
		{"resume", name + " resumed; next start ", "Scheduled"},
	} {
		if got := tide(t, "restarts", step.verb, "web", "-n", "sus"); !strings.HasPrefix(got, step.want) {
			t.Errorf("%s prints %q, want %q", step.verb, got, step.want)
		}
		eventuallyStatus(t, "sus", "web", step.status)
	}
	cluster.ChangeStatus(t, r, func() { r.Status.ConsecutiveFailures = r.Spec.FailureLimit })
	eventuallyStatus(t, "sus", "web", "FailureLimit")
	if got := tide(t, "restarts", "next", "-n", "sus", "--for", "7d", "-o", "json"); strings.TrimSpace(got) != "[]" {
		t.Errorf("a stopped schedule is in the calendar: %s", got)
	}
	if got := tide(t, "restarts", "resume", "web", "-n", "sus"); !strings.HasPrefix(got, name+" resumed; next start ") {
		t.Errorf("resume prints %q", got)
	}
	eventuallyStatus(t, "sus", "web", "Scheduled")
}

// inHalfADay returns an hour in UTC that is about twelve hours away, and the schedule that is due daily at this
// hour. A schedule at a fixed time of the day could become due during the test.
func inHalfADay() (hour int, schedule string) {
	hour = time.Now().UTC().Add(12 * time.Hour).Hour()
	return hour, fmt.Sprintf("0 %d * * *", hour)
}

// TestRestartsNext checks that the calendar shows the schedules that start at the same time, with
// their spread and without suspended schedules.
func TestRestartsNext(t *testing.T) {
	aNamespace(t, "next")
	for _, name := range []string{"a", "b", "c", "spread"} {
		aDeploymentOf(t, "next", name, 0)
	}
	// No manager is running. After a while, stderr reports that.
	next := func(args ...string) string {
		t.Helper()
		r := command{args: append([]string{"restarts", "next"}, args...)}.run(t)
		if r.code != 0 {
			t.Fatalf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
		}
		return r.stdout
	}
	hour, schedule := inHalfADay()
	for _, name := range []string{"a", "b", "c"} {
		aRestart(t, "next", name, schedule, nil)
	}
	aRestart(t, "next", "off", "* * * * *", func(r *tidekeeperv1.ScheduledRestart) { r.Spec.Suspend = true })
	spread := aRestart(t, "next", "spread", schedule, func(r *tidekeeperv1.ScheduledRestart) { r.Spec.SpreadSeconds = 86400 })
	var calendar []struct {
		Time   time.Time
		Count  int
		Starts []struct {
			Name        string
			Tick, Start time.Time
		}
	}
	if err := json.Unmarshal([]byte(next("-n", "next", "--for", "48h", "-o", "json")), &calendar); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, minute := range calendar {
		for _, s := range minute.Starts {
			counts[s.Name]++
			if s.Start.Truncate(time.Minute) != minute.Time || s.Tick.Hour() != hour || s.Name == spread.Name && (s.Start.Equal(s.Tick) || s.Tick.Before(spread.CreationTimestamp.Time)) {
				t.Errorf("start %+v in the minute of %s", s, minute.Time)
			}
		}
		if minute.Time.Hour() == hour && minute.Time.Minute() == 0 && minute.Count < 3 {
			t.Errorf("%d start at %s, want 3", minute.Count, minute.Time)
		}
	}
	// A tick before the creation of its ScheduledRestart does not count, even if the spread delays
	// its start until after the creation.
	if n := counts["spread"]; n < 1 || n > 2 {
		t.Errorf("%d starts of the one with a spread of a day", n)
	}
	delete(counts, "spread")
	if diff := cmp.Diff(map[string]int{"a": 2, "b": 2, "c": 2}, counts); diff != "" {
		t.Errorf("starts of two days (-want +got):\n%s", diff)
	}
	if got := next("-A"); !strings.HasPrefix(got, "DAY ") || !regexp.MustCompile(fmt.Sprintf(`%02d:00 +3 +next/a, next/b, next/c\n`, hour)).MatchString(got) {
		t.Errorf("the calendar is\n%s", got)
	}
	// On a terminal the output contains a bar, and no line is wider than the terminal.
	shown := command{args: []string{"restarts", "next", "-A"}}.runOn(t, 60)
	if shown.code != 0 || !strings.Contains(shown.stdout, "████████\x1b[0m") {
		t.Errorf("on a terminal: exit code %d\n%s", shown.code, shown.stdout)
	}
	for line := range strings.Lines(regexp.MustCompile(`\x1b\[\d*m`).ReplaceAllString(shown.stdout, "")) {
		if strings.HasPrefix(line, "note: ") {
			continue // It says that no manager is running, once that has lasted.
		}
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 60 {
			t.Errorf("%d columns on a screen of 60: %s", n, line)
		}
	}
	quiet := command{args: []string{"restarts", "next", "-A"}, env: []string{"NO_COLOR=1"}}.runOn(t, 60)
	if strings.Contains(quiet.stdout, "\x1b") || !strings.Contains(quiet.stdout, "█") {
		t.Errorf("with NO_COLOR:\n%q", quiet.stdout)
	}
}

// TestRestartsExplain checks that restarts explain needs no cluster.
func TestRestartsExplain(t *testing.T) {
	c := command{kubeconfig: "/nowhere", args: []string{"restarts", "explain", "30 2 * * *", "--time-zone", "Europe/Berlin", "--from", "2027-03-27"}}
	r := c.run(t)
	want := `at 02:30, every day (Europe/Berlin)

TICK                         UTC                    CLOCK
Sat 27 Mar 2027 02:30 CET    2027-03-27T01:30:00Z
Sun 28 Mar 2027 03:00 CEST   2027-03-28T01:00:00Z   02:00 to 02:59 do not exist: runs at their end
Mon 29 Mar 2027 02:30 CEST   2027-03-29T00:30:00Z
`
	if r.code != 0 || r.stderr != "" || !strings.HasPrefix(r.stdout, want) || strings.Count(r.stdout, "\n") != 13 {
		t.Errorf("exit code %d, stderr %q (-want +got):\n%s", r.code, r.stderr, cmp.Diff(want, r.stdout))
	}
}
