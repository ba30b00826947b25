// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNote checks that notes are single lines without control characters, even if they include
// strings from the cluster.
func TestNote(t *testing.T) {
	var errOut strings.Builder
	c := Console{ErrOut: &errOut}
	c.Note("note: pool \x1b[31mred\nsecond line")
	if got := errOut.String(); strings.Contains(got, "\x1b") || strings.Count(got, "\n") != 1 || !strings.HasSuffix(got, "\n") {
		t.Errorf("stderr has %q", got)
	}
}

func TestNothingFound(t *testing.T) {
	for _, tt := range []struct {
		namespace string
		filtered  bool
		want      string
	}{
		{"", false, "There are no pods.\n"},
		{"shop", false, "There are no pods in the namespace shop.\n"},
		{"", true, "There are no pods that match.\n"},
		{"shop", true, "There are no pods in the namespace shop that match.\n"},
	} {
		var errOut strings.Builder
		c := Console{ErrOut: &errOut}
		if c.NothingFound("pods", tt.namespace, tt.filtered); errOut.String() != tt.want {
			t.Errorf("stderr has %q, want %q", errOut.String(), tt.want)
		}
	}
}

// errForbidden is the API server's error for a user without a right.
var errForbidden = &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: `nodes is forbidden: User "vera" cannot list resource "nodes"`}}

func TestFail(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for _, tt := range []struct {
		name string
		ctx  context.Context //nolint:containedctx // passed to Fail
		err  error
		code int
		says string
	}{
		{"an error", t.Context(), errors.New("a\nb"), ExitError, "error: a b\n"},
		{"a code of its own", t.Context(), &CodedError{ExitNotFound, errors.New("no pool")}, ExitNotFound, "error: no pool\n"},
		{"a right is missing", t.Context(), errForbidden, ExitForbidden, "error: nodes is forbidden: User \"vera\" cannot list resource \"nodes\": see kubectl tide check, and SECURITY.md for the roles\n"},
		{"a code without a message", t.Context(), &CodedError{Code: ExitNotDone}, ExitNotDone, ""},
		{"interrupted", ended, fmt.Errorf("list: %w", context.Canceled), ExitInterrupted, ""},
		{"canceled by the server", t.Context(), context.Canceled, ExitError, "error: context canceled\n"},
	} {
		var errOut strings.Builder
		c := Console{ErrOut: &errOut}
		if code := c.Fail(tt.ctx, tt.err); code != tt.code || errOut.String() != tt.says {
			t.Errorf("%s: exit code %d, stderr %q, want %d, %q", tt.name, code, errOut.String(), tt.code, tt.says)
		}
	}
}
