package manifests_test

import (
	"io/fs"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/yaml"

	"github.com/syncgate/syncgate/manifests"
)

// A Job's template cannot be changed: with one name for all versions an upgrade
// within its ttlSecondsAfterFinished is refused.
func TestTheCertificateJobOfAnotherVersionIsAnotherJob(t *testing.T) {
	data, err := fs.ReadFile(manifests.Webhook, "webhook/certificates/job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var job batchv1.Job
	if err := yaml.UnmarshalStrict(documents(data)[0], &job); err != nil {
		t.Fatal(err)
	}
	_, tag, _ := strings.Cut(job.Spec.Template.Spec.Containers[0].Image, ":")
	if want := "syncgate-certificates-" + strings.ReplaceAll(tag, ".", "-"); tag == "" || job.Name != want {
		t.Errorf("name: got %q, want %q after its image's tag", job.Name, want)
	}
	if job.Spec.TTLSecondsAfterFinished == nil {
		t.Error("the Jobs of old versions stay for ever")
	}
}
