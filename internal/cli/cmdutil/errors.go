// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// Documented exit codes of the plugin, for use in scripts.
const (
	ExitError       = 1
	ExitNotDone     = 2 // a plan found changes, pods of lost nodes fit nowhere else, a drain would not move all pods, a forecast has missed ticks or a round of maintenance that ends too late, a gate is closed, a requested restart did not succeed, or a migration has manual steps
	ExitNotFound    = 3
	ExitUnreachable = 4
	ExitForbidden   = 5
	ExitKindUnknown = 6
	ExitInterrupted = 130 // exit code that shells use for Ctrl-C
)

// CodedError is an error with a specific exit code. If Err is nil, the plugin exits without an
// error message.
type CodedError struct {
	Code int
	Err  error
}

// Error returns the message of Err, or the exit code as a message if Err is nil.
func (f *CodedError) Error() string {
	if f.Err == nil {
		return fmt.Sprintf("exit code %d", f.Code)
	}
	return f.Err.Error()
}

// Unwrap returns Err for errors.Is and errors.As.
func (f *CodedError) Unwrap() error { return f.Err }

// noCluster returns the error message for a missing cluster configuration. variable is the value of
// $KUBECONFIG.
func noCluster(variable string) string {
	if files := filepath.SplitList(variable); len(files) > 0 {
		if _, err := os.Stat(files[0]); errors.Is(err, os.ErrNotExist) {
			return "KUBECONFIG=" + variable + ": no such file"
		}
	}
	return "no cluster is configured: set KUBECONFIG or --kubeconfig"
}

// ExplainError returns the exit code for an error, and a message that helps the user fix the
// problem.
func ExplainError(err error) (code int, message string) {
	var known *CodedError
	var request *url.Error
	switch {
	case errors.As(err, &known):
		return known.Code, err.Error()
	case clientcmd.IsEmptyConfig(err) || errors.Is(err, clientcmd.ErrEmptyConfig):
		return ExitUnreachable, noCluster(os.Getenv("KUBECONFIG"))
	case clientcmd.IsContextNotFound(err):
		return ExitError, err.Error() + ": kubectl config get-contexts lists the existing contexts"
	case clientcmd.IsConfigurationInvalid(err), errors.Is(err, os.ErrNotExist) && !errors.As(err, &request):
		return ExitError, "kubeconfig: " + err.Error()
	case apierrors.IsUnauthorized(err):
		return ExitForbidden, "the cluster does not know you: log in again (" + err.Error() + ")"
	case apierrors.IsForbidden(err):
		return ExitForbidden, err.Error()
	case apierrors.IsNotFound(err):
		return ExitNotFound, err.Error()
	case errors.As(err, &request):
		return ExitUnreachable, unreachable(request)
	default:
		return ExitError, err.Error()
	}
}

// unreachable returns a message that names the API server that cannot be reached, and the reason.
func unreachable(request *url.Error) string {
	var dial *net.OpError
	reason := request.Err.Error()
	switch {
	case errors.Is(request, syscall.ECONNREFUSED):
		reason = "connection refused"
	case request.Timeout():
		reason = "no answer in time"
	case errors.As(request, &dial):
		reason = dial.Err.Error()
	}
	server := request.URL
	if u, err := url.Parse(request.URL); err == nil {
		server = u.Scheme + "://" + u.Host
	}
	return fmt.Sprintf("the cluster at %s cannot be reached: %s", server, reason)
}

// AboutKind replaces an API server's NotFound error by an error that names the kind. The new error
// states either that the cluster does not serve the kind, or that the object does not exist.
// AboutKind returns other errors unchanged.
func AboutKind(err error, kind, namespace, name string) error {
	switch {
	case !apierrors.IsNotFound(err):
		return err
	case apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		return &CodedError{ExitKindUnknown, fmt.Errorf("the cluster does not know the kind %s: install Tidekeeper (docs/tasks/install-with-helm.md), or only its kinds: kubectl apply -k config/crd, in a checkout", kind)}
	default:
		return NotFound(kind, namespace, name)
	}
}

// NotFound returns the error for a missing object.
func NotFound(kind, namespace, name string) error {
	if namespace == "" {
		return &CodedError{ExitNotFound, fmt.Errorf("there is no %s %q", kind, name)}
	}
	return &CodedError{ExitNotFound, fmt.Errorf("there is no %s %q in the namespace %q", kind, name, namespace)}
}
