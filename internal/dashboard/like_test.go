// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"tidekeeper.dev/tidekeeper/internal/view"
)

// TestFormAsWorkload checks that selecting a workload in the form reads a copy of its pods from the
// API server, caches it, and shows the equivalent command.
func TestFormAsWorkload(t *testing.T) {
	s := newTestSite(t, nil)
	var asked []string
	lookups := memberOf(s).models.lookups
	lookups.cluster.PodLike = func(_ context.Context, namespace, like string) (*corev1.Pod, string, error) {
		asked = append(asked, namespace+":"+like)
		if like == "deployment/none" {
			return nil, "", errors.New("there is no such Deployment")
		}
		return view.PodOf(corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("3Gi")}), "without defaults", nil
	}
	for _, tc := range []struct{ like, of, asked, command, mistake string }{
		{"shop/deployment/web", "", "shop:deployment/web", "pools fit --like deployment/web -n shop", ""},
		{" shop/deployment/web ", "blog", "", "pools fit --like deployment/web -n shop", ""},
		{"deployment/web", "", ":deployment/web", "pools fit --like deployment/web", ""},
		{"deployment/web", "blog", "blog:deployment/web", "pools fit --like deployment/web -n blog", ""},
		{"shop/deployment/none", "", "shop:deployment/none", "pools fit --like deployment/none -n shop", "there is no such Deployment"},
		{"web", "", "", "pools fit", "As workload: write NAMESPACE/TYPE/NAME, such as shop/deployment/web"},
		{"shop/deployment/", "", "", "pools fit", "As workload: write NAMESPACE/TYPE/NAME, such as shop/deployment/web"},
		{"a/b/c/d", "", "", "pools fit", "As workload: write NAMESPACE/TYPE/NAME, such as shop/deployment/web"},
		{"/deployment/web", "", "", "pools fit", "As workload: write NAMESPACE/TYPE/NAME, such as shop/deployment/web"},
		{"shop/deployment/" + strings.Repeat("x", longestLike), "", "", "pools fit", "As workload: write NAMESPACE/TYPE/NAME, such as shop/deployment/web"},
	} {
		asked = nil
		var d whatIf
		asks := lookups.questions(t.Context(), noon)
		pod, command, mistake := d.ask(address{url.Values{"like": {tc.like}, "cpu": {"x"}}, tc.of}, asks.podLike)
		if asks.await() {
			if pod != nil || !errors.Is(mistake, errNoAnswer) {
				t.Errorf("%q: before the API server has answered it is %v, %v", tc.like, pod, mistake)
			}
			pod, command, mistake = d.ask(address{url.Values{"like": {tc.like}, "cpu": {"x"}}, tc.of}, asks.podLike)
		}
		said := ""
		if mistake != nil {
			said = mistake.Error()
		}
		if got := strings.Join(asked, " "); got != tc.asked || strings.Join(command, " ") != tc.command || said != tc.mistake || (pod == nil) != (said != "") {
			t.Errorf("%q asks %q, is %q and says %q, want %+v", tc.like, got, command, said, tc)
		}
		for _, f := range d.Fields {
			if want := map[string]string{"cpu": "1500m", "memory": "3Gi"}[f.Name]; !f.Off || pod != nil && f.Value != want {
				t.Errorf("%q: the field %s is %+v, want %q that cannot be changed", tc.like, f.Name, f, want)
			}
		}
	}
}
