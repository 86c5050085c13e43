"""Names of columns -> facts that are public of such columns: small lists of codes, with their sources."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gibbous.core.schema import Column, Level, Schema
from gibbous.read.declaring import Declared

_STATES = (
    "AL AK AZ AR CA CO CT DE DC FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM "
    "NY NC ND OH OK OR PA RI SC SD TN TX UT VT VA WA WV WI WY"
)
_FIPS = (
    "01 02 04 05 06 08 09 10 11 12 13 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 "
    "36 37 38 39 40 41 42 44 45 46 47 48 49 50 51 53 54 55 56"
)
_COUNTRIES = (
    "AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS "
    "BT BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE "
    "EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM "
    "HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC "
    "LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA "
    "NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW "
    "SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO "
    "TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW"
)
_COUNTRIES_3 = (
    "ABW AFG AGO AIA ALA ALB AND ARE ARG ARM ASM ATA ATF ATG AUS AUT AZE BDI BEL BEN BES BFA BGD BGR "
    "BHR BHS BIH BLM BLR BLZ BMU BOL BRA BRB BRN BTN BVT BWA CAF CAN CCK CHE CHL CHN CIV CMR COD COG "
    "COK COL COM CPV CRI CUB CUW CXR CYM CYP CZE DEU DJI DMA DNK DOM DZA ECU EGY ERI ESH ESP EST ETH "
    "FIN FJI FLK FRA FRO FSM GAB GBR GEO GGY GHA GIB GIN GLP GMB GNB GNQ GRC GRD GRL GTM GUF GUM GUY "
    "HKG HMD HND HRV HTI HUN IDN IMN IND IOT IRL IRN IRQ ISL ISR ITA JAM JEY JOR JPN KAZ KEN KGZ KHM "
    "KIR KNA KOR KWT LAO LBN LBR LBY LCA LIE LKA LSO LTU LUX LVA MAC MAF MAR MCO MDA MDG MDV MEX MHL "
    "MKD MLI MLT MMR MNE MNG MNP MOZ MRT MSR MTQ MUS MWI MYS MYT NAM NCL NER NFK NGA NIC NIU NLD NOR "
    "NPL NRU NZL OMN PAK PAN PCN PER PHL PLW PNG POL PRI PRK PRT PRY PSE PYF QAT REU ROU RUS RWA SAU "
    "SDN SEN SGP SGS SHN SJM SLB SLE SLV SMR SOM SPM SRB SSD STP SUR SVK SVN SWE SWZ SXM SYC SYR TCA "
    "TCD TGO THA TJK TKL TKM TLS TON TTO TUN TUR TUV TWN TZA UGA UKR UMI URY USA UZB VAT VCT VEN VGB "
    "VIR VNM VUT WLF WSM YEM ZAF ZMB ZWE"
)
_COUNTRY_NAMES = (
    "Afghanistan, Albania, Algeria, American Samoa, Andorra, Angola, Anguilla, Antigua and Barbuda, "
    "Argentina, Armenia, Aruba, Australia, Austria, Azerbaijan, Bahamas, Bahrain, Bangladesh, Barbados, "
    "Belarus, Belgium, Belize, Benin, Bermuda, Bhutan, Bolivia, Bosnia and Herzegovina, Botswana, "
    "Brazil, Brunei, Bulgaria, Burkina Faso, Burma, Burundi, Cambodia, Cameroon, Canada, Cape Verde, "
    "Cayman Islands, Central African Republic, Chad, Chile, China, Colombia, Comoros, Congo, Costa "
    "Rica, Cote d'Ivoire, Croatia, Cuba, Curacao, Cyprus, Czech Republic, Czechia, Czechoslovakia, "
    "Democratic Republic of the Congo, Denmark, Djibouti, Dominica, Dominican Republic, East Timor, "
    "Ecuador, Egypt, El Salvador, England, Equatorial Guinea, Eritrea, Estonia, Eswatini, Ethiopia, "
    "Faroe Islands, Fiji, Finland, France, French Guiana, French Polynesia, Gabon, Gambia, Georgia, "
    "Germany, Ghana, Gibraltar, Greece, Greenland, Grenada, Guadeloupe, Guam, Guatemala, Guernsey, "
    "Guinea, Guinea-Bissau, Guyana, Haiti, Honduras, Hong Kong, Hungary, Iceland, India, Indonesia, "
    "Iran, Iraq, Ireland, Isle of Man, Israel, Italy, Ivory Coast, Jamaica, Japan, Jersey, Jordan, "
    "Kazakhstan, Kenya, Kiribati, Korea, Kosovo, Kuwait, Kyrgyzstan, Laos, Latvia, Lebanon, Lesotho, "
    "Liberia, Libya, Liechtenstein, Lithuania, Luxembourg, Macao, Macau, Macedonia, Madagascar, Malawi, "
    "Malaysia, Maldives, Mali, Malta, Marshall Islands, Martinique, Mauritania, Mauritius, Mayotte, "
    "Mexico, Micronesia, Moldova, Monaco, Mongolia, Montenegro, Montserrat, Morocco, Mozambique, "
    "Myanmar, Namibia, Nauru, Nepal, Netherlands, New Caledonia, New Zealand, Nicaragua, Niger, "
    "Nigeria, North Korea, North Macedonia, Northern Ireland, Northern Mariana Islands, Norway, Oman, "
    "Pakistan, Palau, Palestine, Panama, Papua New Guinea, Paraguay, Peru, Philippines, Poland, "
    "Portugal, Puerto Rico, Qatar, Reunion, Romania, Russia, Russian Federation, Rwanda, Saint Kitts "
    "and Nevis, Saint Lucia, Saint Vincent and the Grenadines, Samoa, San Marino, Sao Tome and "
    "Principe, Saudi Arabia, Scotland, Senegal, Serbia, Seychelles, Sierra Leone, Singapore, Slovakia, "
    "Slovenia, Solomon Islands, Somalia, South Africa, South Korea, South Sudan, Soviet Union, Spain, "
    "Sri Lanka, Sudan, Suriname, Swaziland, Sweden, Switzerland, Syria, Taiwan, Tajikistan, Tanzania, "
    "Thailand, Togo, Tonga, Trinidad and Tobago, Tunisia, Turkey, Turkiye, Turkmenistan, Turks and "
    "Caicos Islands, Tuvalu, Uganda, Ukraine, United Arab Emirates, United Kingdom, United States, "
    "United States of America, Uruguay, Uzbekistan, Vanuatu, Vatican City, Venezuela, Viet Nam, "
    "Vietnam, Virgin Islands, Wales, Western Sahara, Yemen, Yugoslavia, Zambia, Zimbabwe"
)
_STATE_NAMES = (
    "Alabama, Alaska, Arizona, Arkansas, California, Colorado, Connecticut, Delaware, District of "
    "Columbia, Florida, Georgia, Hawaii, Idaho, Illinois, Indiana, Iowa, Kansas, Kentucky, Louisiana, "
    "Maine, Maryland, Massachusetts, Michigan, Minnesota, Mississippi, Missouri, Montana, Nebraska, "
    "Nevada, New Hampshire, New Jersey, New Mexico, New York, North Carolina, North Dakota, Ohio, "
    "Oklahoma, Oregon, Pennsylvania, Rhode Island, South Carolina, South Dakota, Tennessee, Texas, "
    "Utah, Vermont, Virginia, Washington, West Virginia, Wisconsin, Wyoming"
)
_CHAPTERS = "I II III IV V VI VII VIII IX X XI XII XIII XIV XV XVI XVII XVIII XIX XX XXI XXII"
_MONTHS = "January February March April May June July August September October November December"
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"


@dataclass(frozen=True, slots=True)
class Entry:
    """Public facts of columns that are called so.

    Attributes:
        name: pattern of the whole name, capitals aside.
        facts: one form of them; several where codes differ from data set to data set.
        source: who publishes them.
    """

    name: str
    facts: tuple[Declared, ...]
    source: str


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Facts for one column.

    Attributes:
        column, facts: what is suggested of which column.
        source: who publishes the facts.
        by_name: whether the name of the column alone says so; otherwise its drafted levels, which were
            read off the data, decided between several lists, and the facts are inferred.
    """

    column: str
    facts: Declared
    source: str
    by_name: bool


def _words(text: str, kind: str = "nominal") -> Declared:
    return Declared(kind=kind, levels=tuple(text.split()))


def _whole(first: int, last: int, kind: str = "ordinal") -> Declared:
    return Declared(kind=kind, levels=tuple(range(first, last + 1)))


def _labeled(kind: str, *pairs: tuple[Level, str]) -> Declared:
    return Declared(kind=kind, levels=tuple(level for level, _ in pairs), labels=pairs)


LISTS = (
    Entry(
        r"age(_?(in_?)?years)?",
        (Declared(kind="numeric", lower="0", upper="120", texts=(("measured_in", "years"),)),),
        "the oldest verified age is 122 (Gerontology Research Group)",
    ),
    Entry(
        r"(.*_)?month(_of_.*)?",
        (
            _whole(1, 12),
            _words(_MONTHS, "ordinal"),
            _words(" ".join(m[:3] for m in _MONTHS.split()), "ordinal"),
        ),
        "calendar",
    ),
    Entry(
        r"(.*_)?(week_?day|day_?of_?week|dow)",
        (
            _whole(1, 7),
            _whole(0, 6),
            _words(_DAYS, "ordinal"),
            _words(" ".join(d[:3] for d in _DAYS.split()), "ordinal"),
        ),
        "calendar (ISO 8601 counts 1 to 7 from Monday)",
    ),
    Entry(r"(.*_)?hour(_of_day)?", (_whole(0, 23),), "clock"),
    Entry(r"(.*_)?quarter", (_whole(1, 4),), "calendar"),
    Entry(
        r"(sex|gender)",
        (
            _labeled("binary", (1, "male"), (2, "female")),
            _words("F M", "binary"),
            _words("female male", "binary"),
            _words("Female Male", "binary"),
            _labeled(
                "nominal", (0, "not known"), (1, "male"), (2, "female"), (9, "not applicable")
            ),
        ),
        "ISO/IEC 5218 and its usual short forms",
    ),
    Entry(
        r"(.*_)?(us_?)?state(_?(code|fips|abbr))?|(.*_)?fips",
        (
            _words(_STATES),
            _words(_FIPS),
            Declared(kind="nominal", levels=tuple(map(int, _FIPS.split()))),
        ),
        "US states and DC (ANSI INCITS 38, formerly FIPS 5-2)",
    ),
    Entry(r"(.*_)?country(_?(code|iso2?))?", (_words(_COUNTRIES),), "ISO 3166-1 alpha-2"),
    Entry(r"(.*_)?country_?(code_?|iso_?)?3", (_words(_COUNTRIES_3),), "ISO 3166-1 alpha-3"),
    Entry(
        r"(.*_)?icd(_?10)?_?chapter",
        (_words(_CHAPTERS, "ordinal"), _whole(1, 22)),
        "ICD-10, chapters I to XXII (WHO)",
    ),
)


def text_lists() -> list[tuple[str, ...]]:
    """The lists whose codes are texts, and names: these differ too much to be suggested as levels."""
    texts = (f.levels for entry in LISTS for f in entry.facts if f.levels)
    codes = [tuple(map(str, levels)) for levels in texts if isinstance(levels[0], str)]
    return [*codes, *(tuple(names.split(", ")) for names in (_COUNTRY_NAMES, _STATE_NAMES))]


KEYS = re.compile(
    r"(^|[_\W])(age|sex|gender|race|ethnic\w*|nation\w*|citizen\w*|born|birth\w*|dob|marital\w*|married|"
    r"zip\w*|post_?codes?|postal\w*|plz|fips|state|region|county|canton|province|district|municipal\w*|"
    r"city|town|country|education|educ|school\w*|degree|occupation|job|profession|household\w*)([_\W\d]|$)",
    re.IGNORECASE,
)
"""What others may know of a person, by the words of a name: demography and place (Sweeney 2000), and
what HIPAA's Safe Harbor counts as identifying (45 CFR 164.514(b)(2))."""


def likely_keys(schema: Schema) -> tuple[str, ...]:
    """Columns that an intruder may know: by their names, and days; from the schema alone."""
    return tuple(c.name for c in schema if c.kind == "date" or KEYS.search(c.name))


def suggestions(schema: Schema) -> list[Suggestion]:
    """Facts for columns with inferred facts, at most one a column, from their names and public lists.

    Where a list has several forms, the drafted levels choose, and the suggestion is marked as read
    off the data.
    """
    found = []
    for column in schema:
        left = {fact for fact, source in column.sources if source == "inferred"}
        if not left & {"kind", "levels", "bounds"}:
            continue
        for entry in LISTS:
            if re.fullmatch(entry.name, column.name, re.IGNORECASE):
                found += _suggested(column, entry)
                break
    return found


def _suggested(column: Column, entry: Entry) -> list[Suggestion]:
    texts = any(isinstance(level, str) for level in column.levels)
    if texts and entry.facts[0].kind == "numeric":
        return []  # bands of age are no numbers
    if len(entry.facts) == 1:
        return [Suggestion(column.name, entry.facts[0], entry.source, by_name=True)]
    levels = {(type(level), level) for level in column.levels}
    for facts in entry.facts:
        if levels and levels <= {(type(level), level) for level in facts.levels}:
            return [Suggestion(column.name, facts, entry.source, by_name=False)]
    return []
