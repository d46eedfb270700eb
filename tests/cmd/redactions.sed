# Text that differs between runs: secrets, IDs and times. Times from 2090 are given by commands.
s/ovi_[A-Za-z0-9_-]+/[token]/g
s/v4\.local\.[A-Za-z0-9_-]+/[session]/g
s/whsec_[A-Za-z0-9+\/=_-]+/[secret]/g
s/(secret=|"secret":")[A-Z2-7]{16,}/\1[secret]/g
s/[0-9]{5}(-[0-9]{5}){3}/[code]/g
s/("password":"|password +)[a-z0-9]{26}/\1[password]/g
s/(enrol\/|enrolment code |"enrolment_code":")[a-z0-9]{26}/\1[code]/g
s/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/[id]/g
s/20[2-8][0-9]-[0-9]{2}-[0-9]{2}T[0-9:.]+Z/[time]/g
s/("| )[0-9a-f]{12}("| |$)/\1[fingerprint]\2/g
s/"checkpoint":[0-9]+/"checkpoint":[number]/g
s/process [0-9]+/process [process]/g
s/  [0-9a-f]{8}  /  [id]  /g
/^[A-Z][A-Z -]*(  +[A-Z][A-Z -]*)+$/s/  +/  /g
