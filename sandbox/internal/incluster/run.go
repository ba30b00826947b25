// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package incluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Options configure the program and the identity it runs under.
type Options struct {
	// Config is the client configuration with which the administrator connects to the API server.
	Config *rest.Config
	// Program is the path of the program, followed by its arguments.
	Program []string
	// From names the Deployment or StatefulSet whose container the program replaces. It is
	// deployment/NAMESPACE/NAME, statefulset/NAMESPACE/NAME or the path of a Deployment's manifest.
	// It is empty if the program replaces no container.
	From string
	// ServiceAccount is the program's ServiceAccount if From is empty. If both fields are empty, a
	// new ServiceAccount without permissions is created.
	ServiceAccount types.NamespacedName
	// Services lists additional Services whose webhooks the program serves. The program always
	// serves the webhooks of Services that select its Pod.
	Services []types.NamespacedName
	// CertDir is the directory in which the program expects its serving certificate for webhooks.
	CertDir string
	// WebhookPort is the port on which the program serves webhooks. If it is 0, the target port of
	// the webhook's Service is used, or 9443 if that Service does not exist.
	WebhookPort int32
	// Environment lists environment variables of the program, as NAME=VALUE, in addition to the
	// variables that the container declares.
	Environment []string
}

// cleanupTimeout is the maximum total time of the cleanups after a program has exited.
const cleanupTimeout = 30 * time.Second

// run holds the options, client and cleanups of a program that runs as if in a pod.
type run struct {
	Options
	client   kubernetes.Interface
	cleanups cleanups
}

// Run runs the program in this process's namespaces until it exits, and returns its exit code. It
// kills the program when the file "starter" reaches EOF, because the outer process has then exited.
func Run(ctx context.Context, o Options, starter *os.File) (code int, err error) {
	// Catch signals from here on, so that no signal terminates this process before its cleanups.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, passedOn...)
	defer signal.Stop(signals)
	starterEnded := ended(starter)

	r := &run{Options: o}
	if r.client, err = kubernetes.NewForConfig(o.Config); err != nil {
		return 0, err
	}
	defer r.cleanups.run()
	cmd, podDeleted, err := r.prepare(ctx)
	if err != nil {
		return 0, err
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	return supervise(cmd, signals, starterEnded, podDeleted)
}

// prepare sets up the program's Pod, files and webhooks, and returns the command that runs the
// program. The returned channel receives the grace period when the Pod is deleted.
func (r *run) prepare(ctx context.Context) (*exec.Cmd, <-chan time.Duration, error) {
	wanted, err := newPod(ctx, r.client, r.Options)
	if err != nil {
		return nil, nil, err
	}
	hooks, err := findWebhooks(ctx, r.client, r.Options, wanted)
	if err != nil {
		return nil, nil, err
	}
	dirs := []string{serviceAccountDir}
	if hooks != nil {
		dirs = append(dirs, r.CertDir)
	}
	if err := mount(dirs...); err != nil {
		return nil, nil, err
	}
	pod, err := podStarter{client: r.client, cleanups: &r.cleanups}.start(ctx, wanted)
	if err != nil {
		return nil, nil, err
	}
	// Use the Pod's name as the host name, which programs use as their identity in leader
	// elections. Truncate a long name, as a kubelet does.
	if err := unix.Sethostname([]byte(pod.Name[:min(len(pod.Name), longestHostName)])); err != nil {
		return nil, nil, fmt.Errorf("set the host name: %w", err)
	}
	if err := dropCapabilities(); err != nil {
		return nil, nil, err
	}
	token := newServiceAccountVolume(r.client, pod, r.Config.CAData, serviceAccountDir, tokenLifetime)
	if err := token.keep(ctx, &r.cleanups); err != nil {
		return nil, nil, err
	}
	if hooks != nil {
		if err := hooks.redirectTo(ctx, pod, r.CertDir, &r.cleanups); err != nil {
			return nil, nil, err
		}
	}
	declared, err := variables{client: r.client, pod: pod}.of(ctx, container(pod))
	if err != nil {
		return nil, nil, err
	}
	cmd, err := r.command(pod, declared)
	if err != nil {
		return nil, nil, err
	}
	return cmd, watchDeletion(ctx, r.client, pod, &r.cleanups), nil
}
