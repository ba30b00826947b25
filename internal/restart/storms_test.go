// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/workload/podconfig"
)

// TestStorms checks that a storm has a series that is labeled with the changing object, and whose
// labels change only together with the condition. A tenant with many storms must not hide another
// tenant's storm.
func TestStorms(t *testing.T) {
	s := &storms{newMemories()}
	status := func(message string) *tidekeeperv1.ScheduledRestartStatus {
		if message == "" {
			return &tidekeeperv1.ScheduledRestartStatus{}
		}
		return &tidekeeperv1.ScheduledRestartStatus{Conditions: []metav1.Condition{{Type: tidekeeperv1.ConditionRestartStorm, Status: metav1.ConditionTrue, Message: message}}}
	}
	observe := func(namespace, name, was, is, writer string) {
		in := &decision.Input{Config: &decision.Config{Source: decision.Source{Kind: podconfig.Secret, Name: "tls", Writers: []string{writer}}}}
		s.observe(types.NamespacedName{Namespace: namespace, Name: name}, &tidekeeperv1.ScheduledRestart{Status: *status(was)}, status(is), in)
	}
	expect := func(what string, lines ...string) {
		t.Helper()
		text := "# HELP tidekeeper_restart_storm " + stormHelp + "\n# TYPE tidekeeper_restart_storm gauge\n" + strings.Join(lines, "\n") + "\n"
		if err := testutil.CollectAndCompare(s, strings.NewReader(text)); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	const others = `tidekeeper_restart_storm{name="",namespace="",object="",writer=""} `
	series := func(namespace, name, writer string) string {
		return fmt.Sprintf(`tidekeeper_restart_storm{name=%q,namespace=%q,object="Secret tls",writer=%q} 1`, name, namespace, writer)
	}
	observe("shop", "web", "", "", "a")
	expect("none", others+"0")
	observe("shop", "web", "", "by a", "a")
	observe("shop", "web", "by a", "by a", "b")
	expect("it begins", others+"0", series("shop", "web", "a"))
	observe("shop", "web", "by a", "by b", "b")
	expect("its condition changes", others+"0", series("shop", "web", "b"))

	all := []string{others + "5", series("shop", "web", "b")}
	for i := range stormRows + 4 {
		name := fmt.Sprintf("a-%02d", i)
		if observe("evil", name, "x", "x", "m"); i < stormRows-1 {
			all = append(all, series("evil", name, "m"))
		}
	}
	expect("many, of another leader", all...)
	for i := range stormRows + 4 {
		s.memories.forget(types.NamespacedName{Namespace: "evil", Name: fmt.Sprintf("a-%02d", i)})
	}
	observe("shop", "web", "by b", "", "b")
	expect("it ends", others+"0")
}
