// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30m": 30 * time.Minute, "24h": 24 * time.Hour, "7d": 168 * time.Hour, "1.5d": 36 * time.Hour, "2w": 336 * time.Hour,
		"": 0, "0": 0, "-1h": 0, "d": 0, "soon": 0, "1e9d": 0, "NaNd": 0,
	} {
		var d Duration
		err := d.Set(text)
		if (err == nil) != (want > 0) || d.Duration != want {
			t.Errorf("%q: %s, %v; want %s", text, d.Duration, err, want)
		}
	}
}

func TestDurationIsShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		24 * time.Hour: "24h", 10 * time.Minute: "10m", 90 * time.Minute: "1h30m", 20 * time.Second: "20s", 70 * time.Second: "1m10s", 0: "",
	} {
		if got := (&Duration{Duration: d}).String(); got != want {
			t.Errorf("%s is shown as %q, want %q", d, got, want)
		}
	}
}

func TestExplainError(t *testing.T) {
	resource := schema.GroupResource{Group: "tidekeeper.dev", Resource: "scheduledrestarts"}
	unknown := apierrors.NewGenericServerResponse(http.StatusNotFound, "get", resource, "", "404 page not found", 0, true)
	refused := &url.Error{Op: "Get", URL: "https://127.0.0.1:6443/apis?x=y", Err: fmt.Errorf("dial tcp 127.0.0.1:6443: connect: %w", syscall.ECONNREFUSED)}
	for _, tc := range []struct {
		err  error
		code int
		want string
	}{
		{AboutKind(unknown, "ScheduledRestart", "shop", ""), ExitKindUnknown,
			"the cluster does not know the kind ScheduledRestart: install Tidekeeper (docs/tasks/install-with-helm.md), or only its kinds: kubectl apply -k config/crd, in a checkout"},
		{AboutKind(apierrors.NewNotFound(resource, "web"), "ScheduledRestart", "shop", "web"), ExitNotFound,
			`there is no ScheduledRestart "web" in the namespace "shop"`},
		{apierrors.NewForbidden(resource, "", errors.New(`User "dev" cannot list it`)), ExitForbidden,
			`scheduledrestarts.tidekeeper.dev is forbidden: User "dev" cannot list it`},
		{AboutKind(apierrors.NewNotFound(resource, "gpu"), "NodePool", "", "gpu"), ExitNotFound, `there is no NodePool "gpu"`},
		{refused, ExitUnreachable, "the cluster at https://127.0.0.1:6443 cannot be reached: connection refused"},
		{errors.New("schedule \"\" is empty"), ExitError, `schedule "" is empty`},
	} {
		code, message := ExplainError(tc.err)
		if diff := cmp.Diff(fmt.Sprint(tc.code, " ", tc.want), fmt.Sprint(code, " ", message)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tc.err, diff)
		}
	}
}
