// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restarts

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
)

// TestReferences checks that the command line accepts workloads, and names in the form that -o name
// prints.
func TestReferences(t *testing.T) {
	other := aRestart("nightly", "@daily")
	other.Spec.TargetRef.Name = "api"
	all := []tidekeeperv1.ScheduledRestart{aRestart("api", "@daily"), aRestart("web", "@daily"), other}
	for _, tt := range []struct{ args, want string }{
		{"web", "web"},
		{"web api web", "web, api"},
		{"scheduledrestart.tidekeeper.dev/web eru/api", "web, api"},
		{"scheduledrestarts.v1.tidekeeper.dev/web", "web"},
		{"deployment/web", "web"},
		{"deployments.apps/api web", "api, nightly, web"},
		{"deploy/api nightly", "api, nightly"},
		{"none", `there is no ScheduledRestart "none" in the namespace "shop"`},
		{"sts/web", `no ScheduledRestart restarts the StatefulSet "web" in the namespace "shop"`},
		{"pod/web", `"pod/web" is not a ScheduledRestart or a workload: write NAME, scheduledrestart/NAME, or a workload such as deployment/NAME`},
		{"eru/", `"eru/" is not a ScheduledRestart or a workload: write NAME, scheduledrestart/NAME, or a workload such as deployment/NAME`},
	} {
		refs, err := parseReferences(strings.Fields(tt.args))
		var found []tidekeeperv1.ScheduledRestart
		if err == nil {
			found, err = pick(all, refs, "shop")
		}
		got := namesOf(found)
		if err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.args, diff)
		}
	}
}

func TestTargetsAreNamedInOneWay(t *testing.T) {
	web := []reference{{name: "web"}}
	for want, o := range map[string]targets{
		"":                             {refs: web, Selection: cmdutil.Selection{DryRun: "server"}},
		"--dry-run=client: write none": {Selection: cmdutil.Selection{All: true, DryRun: "client"}},
		"name restarts by ":            {Selection: cmdutil.Selection{DryRun: "none"}},
		"name restarts by NAME":        {refs: web, Selection: cmdutil.Selection{All: true, DryRun: "none"}},
		"name restarts by NAME or":     {Selection: cmdutil.Selection{All: true, LabelSelector: "app=web", DryRun: "none"}},
	} {
		o.Selector = labels.Everything()
		if err := o.Validate(); (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}
