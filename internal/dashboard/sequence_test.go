// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/internal/view"
)

// TestSequenceForm checks how the fields for lost and cordoned nodes are read.
func TestSequenceForm(t *testing.T) {
	var nodes []*corev1.Node
	for _, name := range []string{"a", "b", "c", "d"} {
		nodes = append(nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	room, _ := view.NewRoom(nil, nodes, nil)
	for _, tt := range []struct{ lose, cordon, command, mistake string }{
		{"", "", "", ""},
		{" ; ", "", "", "write the nodes that are lost first"},
		{"", "a", "", "write the nodes that are lost first"},
		{"a", "", "kubectl tide pools loss --node a", ""},
		{"b, a;c d ,; ", "", "kubectl tide pools loss --node a,b --then c,d", ""},
		{"a;b", "d c", "kubectl tide pools loss --node a --then b --cordon c,d", ""},
		{"x", "", "", `there is no node "x"`},
		{"a", "x", "", `there is no node "x"`},
		{"a;b;a", "", "", `node "a" is lost already`},
		{"a;b;c;d;;a", "", "", "write at most 5 losses"},
		{`$(reboot)`, "", "", `there is no node "$(reboot)"`},
	} {
		s := sequenceOf(address{query: url.Values{"lose": {tt.lose}, "cordon": {tt.cordon}}}, room, links{})
		if diff := cmp.Diff([]string{tt.command, tt.mistake}, []string{s.Command, s.Mistake}); diff != "" {
			t.Errorf("%q, %q (-want +got):\n%s", tt.lose, tt.cordon, diff)
		}
	}
	s := sequenceOf(address{query: url.Values{"lose": {"a"}}}, room, links{context: "prod; reboot"})
	if want := "kubectl tide pools loss --node a --context 'prod; reboot'"; s.Command != want {
		t.Errorf("of several clusters: %s, want %s", s.Command, want)
	}
}
