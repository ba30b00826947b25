// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// TestHeadline checks that the headline links to each problem, and reports that there are no
// problems only if all numbers are known.
func TestHeadline(t *testing.T) {
	fragile := func(names ...string) (rows []poolRow) {
		for _, name := range names {
			rows = append(rows, poolRow{Pool: view.Pool{Name: name}, LossIs: view.Bad})
		}
		return append(rows, poolRow{Pool: view.Pool{Name: "sound"}, LossIs: view.Good})
	}
	for name, tc := range map[string]struct {
		d    overview
		want []string
		calm bool
	}{
		"nothing": {overview{Pools: fragile()}, nil, true},
		"all": {overview{Stopped: 2, Failing: 1, Missed: "720 ticks of shop/broken", Pending: 5, PendingIn: []choice{{Href: "/capacity#pending"}}, NotReady: 3, Pools: fragile("gpu")}, []string{
			"2 restarts stopped #h-trouble", "1 restart failed #h-trouble", "720 ticks of shop/broken will be missed /restarts#unserved", "5 pods pending /capacity#pending",
			"3 pods of the last hour not ready /pods", "gpu does not survive its worst node /capacity#losses",
		}, false},
		"two pools":  {overview{Pools: fragile("a", "b")}, []string{"a and b do not survive their worst node /capacity#losses"}, false},
		"many pools": {overview{Pools: fragile("a", "b", "c", "d")}, []string{"a, b and 2 more pools do not survive their worst node /capacity#losses"}, false},
		"of several": {overview{Pending: 2, PendingIn: []choice{{Href: "/a"}, {Href: "/b"}}}, []string{"2 pods pending #h-pools"}, false},
		"unknown":    {overview{NoPods: "you may not list pods"}, nil, false},
		"in part":    {overview{Partly: true}, nil, false},
		"no manager": {overview{NoManager: "no manager leads"}, nil, false},
		"filtered":   {overview{Filter: "web"}, nil, false},
	} {
		tc.d.addHeadline(links{})
		var got []string
		for _, item := range tc.d.Headline {
			got = append(got, item.Text+" "+item.Href)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || tc.d.Calm != tc.calm {
			t.Errorf("%s: calm is %v (-want +got):\n%s", name, tc.d.Calm, diff)
		}
	}
}

// TestOverviewBeginsWithTheHeadline checks that a cluster's overview shows the headline above its
// tables.
func TestOverviewBeginsWithTheHeadline(t *testing.T) {
	shown := html(t, siteWith(t, brokenEveryTwoMinutes()), "/")
	headline, missed := strings.Index(shown, `id="headline"`), strings.Index(shown, "716 ticks of shop/broken will be missed</span></a>")
	if headline < 0 || missed < headline || strings.Index(shown, "<section") < missed {
		t.Errorf("the overview does not begin with its headline:\n%.1500s", shown)
	}
	lists := map[string]runtime.Object{
		"deployments": &appsv1.DeploymentList{Items: []appsv1.Deployment{healthyWeb()}},
		kindPools:     &tidekeeperv1.NodePoolList{},
	}
	if calm := html(t, siteWith(t, lists), "/"); !strings.Contains(calm, "Nothing needs attention.") {
		t.Errorf("a cluster without trouble has the headline:\n%.1500s", calm)
	}
}
