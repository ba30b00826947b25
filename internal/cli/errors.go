// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// Exit codes, for scripts.
const (
	exitError       = 1
	exitChanges     = 2 // a plan that found changes
	exitByHand      = 2 // a migration that leaves something to a person
	exitNotFound    = 3
	exitUnreachable = 4
	exitForbidden   = 5
	exitKindUnknown = 6
	exitInterrupted = 130 // as a shell has it
)

// failure is an error that has a code of its own. Without an error in it there
// is nothing to say that was not said.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string {
	if f.err == nil {
		return fmt.Sprintf("exit code %d", f.code)
	}
	return f.err.Error()
}
func (f *failure) Unwrap() error { return f.err }

// fail prints an error in one line and returns the exit code.
func (a *app) fail(ctx context.Context, err error) int {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return exitInterrupted
	}
	if known := (*failure)(nil); errors.As(err, &known) && known.err == nil {
		return known.code
	}
	code, message := explainError(err)
	fmt.Fprintln(a.errOut, "error: "+oneLine(message))
	return code
}

// explainError returns the exit code of an error, and says what it is in the
// words of somebody who has to do something about it.
func explainError(err error) (code int, message string) {
	var known *failure
	var request *url.Error
	var dial *net.OpError
	switch {
	case errors.As(err, &known):
		return known.code, err.Error()
	case clientcmd.IsEmptyConfig(err) || errors.Is(err, clientcmd.ErrEmptyConfig):
		return exitUnreachable, "no cluster is configured: set KUBECONFIG or --kubeconfig"
	case clientcmd.IsContextNotFound(err):
		return exitError, err.Error() + ": kubectl config get-contexts lists those there are"
	case clientcmd.IsConfigurationInvalid(err), errors.Is(err, os.ErrNotExist) && !errors.As(err, &request):
		return exitError, "kubeconfig: " + err.Error()
	case apierrors.IsUnauthorized(err):
		return exitForbidden, "the cluster does not know you: log in again (" + err.Error() + ")"
	case apierrors.IsForbidden(err):
		return exitForbidden, err.Error()
	case apierrors.IsNotFound(err):
		return exitNotFound, err.Error()
	case errors.As(err, &request):
		reason := request.Err.Error()
		switch {
		case errors.Is(err, syscall.ECONNREFUSED):
			reason = "connection refused"
		case request.Timeout():
			reason = "no answer in time"
		case errors.As(err, &dial):
			reason = dial.Err.Error()
		}
		server := request.URL
		if u, err := url.Parse(request.URL); err == nil {
			server = u.Scheme + "://" + u.Host
		}
		return exitUnreachable, fmt.Sprintf("the cluster at %s cannot be reached: %s", server, reason)
	default:
		return exitError, err.Error()
	}
}

// aboutKind puts the kind into errors of the API server that leave it open: a
// kind that it does not know, and an object that is not there.
func aboutKind(err error, kind, namespace, name string) error {
	switch {
	case !apierrors.IsNotFound(err):
		return err
	case apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		return &failure{exitKindUnknown, fmt.Errorf("the cluster does not know the kind %s: install it with kubectl apply -k config/crd", kind)}
	case namespace == "":
		return &failure{exitNotFound, fmt.Errorf("there is no %s %q", kind, name)}
	default:
		return &failure{exitNotFound, fmt.Errorf("there is no %s %q in the namespace %q", kind, name, namespace)}
	}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
