"""Common English words from which prompts are put together."""

from __future__ import annotations

NOUNS = tuple(
    "apple autumn baker bank basket beach bell bird blanket boat book bottle branch bread bridge"  # noqa: SIM905
    " brother bucket building cabin candle captain carpet castle cat chair child church city cloud"
    " coat coffee corner cottage country cousin daughter desert dinner doctor dog door dress dust"
    " engine evening family farm farmer father fence field fire fish floor flower forest friend"
    " garden gate girl glass gold grandmother grass guest hall hammer harbor hat hill horse hotel"
    " house island jacket journey kitchen ladder lady lake lamp lantern letter library light lion"
    " machine map market meadow mirror money moon morning mother mountain music neighbor night"
    " ocean office orange orchard paper path piano picture pilot planet pocket rabbit rain river"
    " road roof room rope sailor salt school season shadow ship shoe shop silver sister sky smoke"
    " snow soldier song spring star station stone storm story stranger street summer sun table"
    " teacher tower town train tree uncle valley village visitor voice wagon wall water weather"
    " wheel wind window winter woman wood worker yard".split()
)
VERBS = tuple(
    "answered asked avoided believed bought broke brought built called carried caught changed"  # noqa: SIM905
    " chose cleaned closed counted covered crossed described drew followed forgot found gave"
    " heard held helped hid kept knew learned left lifted lost loved made met moved needed"
    " noticed opened painted passed planned pulled pushed reached remembered repaired saved saw"
    " sold sent shared showed stopped studied thanked took touched visited wanted watched".split()
)
ADJECTIVES = tuple(
    "angry bright broken brown busy calm careful clean clear cold curious dark deep dry early"  # noqa: SIM905
    " empty famous fast foreign fresh gentle golden gray great green happy heavy honest hungry"
    " kind large late little lonely long loud narrow new noisy old plain polite poor proud quiet"
    " red rich round sad sharp short silent simple slow small soft strange strong sweet tall"
    " tired warm wet white wide wild wise wooden yellow young".split()
)
LINKS = tuple(
    "above across after against along around before behind below beside beyond inside near"  # noqa: SIM905
    " outside past toward under until with without".split()
)
