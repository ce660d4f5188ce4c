package harness

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ExitAnnotation says, on a Pod whose restartPolicy is not Always, how its
// containers end a moment after their start: with status "0", which is the
// default, or another, or "never".
const ExitAnnotation = "e2e.syncgate.io/exit"

// jobTime is the moment.
const jobTime = time.Second

// terminal reports whether a Pod has run to its end.
func terminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// runningStatus is the status of a Pod that a kubelet has started: all of its
// containers run, those of an earlier status since then, the ones whose image
// has changed anew.
func runningStatus(pod *corev1.Pod, nodeIP, podIP string, now time.Time) corev1.PodStatus {
	s := *pod.Status.DeepCopy()
	started := metav1.NewTime(now.Truncate(time.Second)) // what the API keeps
	s.ObservedGeneration = pod.Generation
	s.Phase = corev1.PodRunning
	s.HostIP, s.HostIPs = nodeIP, []corev1.HostIP{{IP: nodeIP}}
	if s.PodIP == "" {
		s.PodIP, s.PodIPs = podIP, []corev1.PodIP{{IP: podIP}}
	}
	if pod.Spec.HostNetwork {
		s.PodIP, s.PodIPs = nodeIP, []corev1.PodIP{{IP: nodeIP}}
	}
	if s.StartTime == nil {
		s.StartTime = &started
	}
	var sidecars, done []corev1.Container
	for _, c := range pod.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			sidecars = append(sidecars, c)
		} else {
			done = append(done, c)
		}
	}
	before := s.InitContainerStatuses
	s.InitContainerStatuses = containers(sidecars, before, started)
	for _, status := range containers(done, before, started) {
		status.Started, status.Ready = new(bool), true // an init container that succeeded is ready
		if status.State.Running != nil {
			status.State = ended(status, 0, started)
		}
		s.InitContainerStatuses = append(s.InitContainerStatuses, status)
	}
	s.ContainerStatuses = containers(pod.Spec.Containers, s.ContainerStatuses, started)
	var ephemeral []corev1.Container
	for _, c := range pod.Spec.EphemeralContainers {
		ephemeral = append(ephemeral, corev1.Container{Name: c.Name, Image: c.Image})
	}
	s.EphemeralContainerStatuses = containers(ephemeral, s.EphemeralContainerStatuses, started)
	conditions := []corev1.PodConditionType{
		corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady,
	}
	for _, gate := range pod.Spec.ReadinessGates {
		conditions = append(conditions, gate.ConditionType)
	}
	for _, c := range conditions {
		setCondition(&s, c, corev1.ConditionTrue, "", started)
	}
	return s
}

// containers returns the statuses of containers that run, in the order of the
// specification. Those that are in before and have the same image are unchanged.
func containers(specs []corev1.Container, before []corev1.ContainerStatus, now metav1.Time) []corev1.ContainerStatus {
	var statuses []corev1.ContainerStatus
	for _, c := range specs {
		status := corev1.ContainerStatus{Name: c.Name}
		for _, b := range before {
			if b.Name == c.Name {
				status = b
			}
		}
		if status.Image != c.Image || status.State.Waiting != nil || status.ContainerID == "" {
			if status.ContainerID != "" {
				status.RestartCount++
			}
			yes := true
			status.Image, status.ImageID = c.Image, imageID(c.Image)
			status.ContainerID = fmt.Sprintf("e2e://%x", sha256.Sum256(fmt.Appendf(nil, "%s %s %d", c.Name, c.Image, now.UnixNano())))
			status.Ready, status.Started = true, &yes
			status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
		}
		statuses = append(statuses, status)
	}
	return statuses
}

// imageID is the reference with the digest that runs: its own, or one made up.
func imageID(image string) string {
	if strings.Contains(image, "@") {
		return image
	}
	return fmt.Sprintf("%s@sha256:%x", image, sha256.Sum256([]byte(image)))
}

// endedStatus is the status of a Pod all of whose containers have ended.
func endedStatus(pod *corev1.Pod, exit int32, now time.Time) corev1.PodStatus {
	s := *pod.Status.DeepCopy()
	at := metav1.NewTime(now.Truncate(time.Second))
	s.Phase = corev1.PodSucceeded
	if exit != 0 {
		s.Phase = corev1.PodFailed
	}
	for _, list := range [][]corev1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses, s.EphemeralContainerStatuses} {
		for i, c := range list {
			if c.State.Running == nil {
				continue
			}
			list[i].Ready, list[i].Started = false, new(bool)
			list[i].State = ended(c, exit, at)
		}
	}
	reason := "PodCompleted"
	if exit != 0 {
		reason = "PodFailed"
	}
	for _, c := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		setCondition(&s, c, corev1.ConditionFalse, reason, at)
	}
	return s
}

func ended(c corev1.ContainerStatus, exit int32, at metav1.Time) corev1.ContainerState {
	t := &corev1.ContainerStateTerminated{ExitCode: exit, Reason: "Completed", ContainerID: c.ContainerID, FinishedAt: at}
	if exit != 0 {
		t.Reason = "Error"
	}
	if c.State.Running != nil {
		t.StartedAt = c.State.Running.StartedAt
	}
	return corev1.ContainerState{Terminated: t}
}

func setCondition(s *corev1.PodStatus, kind corev1.PodConditionType, status corev1.ConditionStatus, reason string, at metav1.Time) {
	condition := corev1.PodCondition{Type: kind, Status: status, Reason: reason, LastTransitionTime: at, ObservedGeneration: s.ObservedGeneration}
	for i, c := range s.Conditions {
		if c.Type != kind {
			continue
		}
		if c.Status == status {
			condition.LastTransitionTime = c.LastTransitionTime
		}
		s.Conditions[i] = condition
		return
	}
	s.Conditions = append(s.Conditions, condition)
}
